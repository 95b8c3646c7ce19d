import ArgumentParser
import SyncModel

/// The option that gives policies to the device whose database is put under sync.
struct PolicyOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How this device decides conflicts, as with “docsync conflicts”; can be given repeatedly.",
      valueName: "[TABLE[.COLUMN]=]POLICY"))
  var policy: [String] = []

  func validate() throws { for text in policy { _ = try PolicyChoice.parse(text) } }

  /// The policies; `nil` if none are given.
  func policies() throws -> SyncPolicies? {
    guard !policy.isEmpty else { return nil }
    var policies = SyncPolicies()
    for text in policy { try PolicyChoice.parse(text).set(in: &policies) }
    return policies
  }
}

/// `[TABLE[.COLUMN]=]POLICY`
struct PolicyChoice: Sendable {
  var name: QualifiedName?
  /// `nil` removes the present one.
  var policy: ConflictPolicy?

  /// Reads a choice. Refuses functions that docsync does not have.
  static func parse(_ text: String) throws -> PolicyChoice {
    // A name in quotes may contain an equals sign; a policy never does.
    let parts = text.split(separator: "=", omittingEmptySubsequences: false)
    let word = String(parts.last ?? "")
    let prefix = parts.dropLast().joined(separator: "=")
    let name = parts.count > 1 ? QualifiedName(prefix) : nil
    let policy = ConflictPolicy(word)
    guard parts.count == 1 || name != nil, policy != nil || word == "default" else {
      throw ValidationError(
        "“\(text)” is not [TABLE[.COLUMN]=]POLICY, where POLICY is latestWins, localWins, "
          + "remoteWins, ask, resolve:NAME or default.")
    }
    if case .resolve(let name) = policy, policy?.shippedFunction == nil {
      throw ValidationError(
        "docsync has no function “\(name)”, only \(ShippedFunction.names). An application can set "
          + "a policy with a function of its own.")
    }
    return PolicyChoice(name: name, policy: policy)
  }

  func set(in policies: inout SyncPolicies) {
    policies.set(policy, table: name?.table, column: name?.column)
  }
}
