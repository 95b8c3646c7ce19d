import SyncModel

/// The versions of rows that merging found in tables of the merge type `keepBoth`.
struct LosingVersions {
  /// A version of a row.
  struct Version: Hashable {
    var row: RowKey
    var stamp: LocalStamp
  }

  private enum Outcome {
    case lost([Value?])
    case replaced
  }

  /// The versions, in the order in which they were found.
  private var found: [Version] = []
  /// The last outcome that was noted for each version: it makes no difference how many changes are
  /// applied at once.
  private var outcomes: [Version: Outcome] = [:]

  var isEmpty: Bool { found.isEmpty }

  /// Versions that live on as rows of their own, with their values.
  var lost: [(version: Version, values: [Value?])] {
    found.compactMap { version in
      if case .lost(let values)? = outcomes[version] { (version, values) } else { nil }
    }
  }

  /// Versions that a later version names as the one that it replaces.
  var replaced: [Version] {
    found.filter { version in
      if case .replaced? = outcomes[version] { true } else { false }
    }
  }

  /// Notes that a version has lost. Each copy of a store sends a version again: the first one
  /// counts.
  mutating func lose(_ version: Version, _ values: [Value?]) {
    if case .lost? = outcomes[version] { return }
    note(.lost(values), of: version)
  }

  mutating func replace(_ version: Version) { note(.replaced, of: version) }

  private mutating func note(_ outcome: Outcome, of version: Version) {
    if outcomes.updateValue(outcome, forKey: version) == nil { found.append(version) }
  }
}
