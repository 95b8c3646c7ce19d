import ArgumentParser
import DocumentSync
import SyncModel

/// `docsync show`
struct Show: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Show what one change set changes.",
    discussion: """
      Name a change set of this device by its number, and one of another device by the first \
      characters of that device's identifier and the number: 3, k7qx2f/3. “docsync log” lists \
      both. Change sets of other devices are read from the shared directory.
      """ + examples("docsync show notes.db 3", "docsync show notes.db k7qx2f/3"))

  @OptionGroup var arguments: StoreArguments

  @Argument(help: ArgumentHelp("The change set.", valueName: "CHANGESET"))
  var changeSet: ChangeSetReference

  @Option(
    help: ArgumentHelp("The greatest number of rows to print of each table.", valueName: "COUNT"))
  var limit = 100

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard limit > 0 else { throw ValidationError("--limit must be 1 or more.") }
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let found = try ChangeSetFile.find(changeSet, of: manager)
      let names = await ClientNames(manager)
      let result = ChangeSetJSON(
        found.changeSet, hash: found.hash, byteCount: found.byteCount,
        clientName: names.name(found.changeSet.header.client))
      return Outcome(
        json: result,
        lines: ChangeSetText(found.changeSet, names: names, limit: limit).lines(result))
    }
  }
}

/// A change set as the user names it: `3` or `k7qx2f/3`.
struct ChangeSetReference: ExpressibleByArgument, Sendable {
  /// The beginning of the author's identifier; `nil` for this store.
  var prefix: String?
  var number: UInt64

  init?(argument: String) {
    let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
    guard let last = parts.last, let number = UInt64(last), number > 0, parts.count <= 2,
      parts.first?.isEmpty == false
    else { return nil }
    self.number = number
    prefix = parts.count == 2 ? parts[0].lowercased() : nil
  }
}
