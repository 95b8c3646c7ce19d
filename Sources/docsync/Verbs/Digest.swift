import ArgumentParser
import DocumentSync
import SyncStore

/// `docsync digest`
struct Digest: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Reduce what a database contains to two hashes.",
    discussion: """
      The first is over the rows as they are shown, integer keys that may differ from device \
      to device left aside: it is equal on two devices exactly if they show the same. The \
      second is over what lies beneath: times of edits, deleted rows, rows that are kept and \
      not shown. Edits that were not synchronized yet are in the first only.
      """)

  @OptionGroup var arguments: StoreArguments
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var visible: String
    var logical: String
    var rowCount: Int
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let digest = try await manager.digest()
      let result = Result(
        store: arguments.store, visible: digest.visible.description,
        logical: digest.logical.description, rowCount: digest.rowCount)
      let lines = alignedLines([
        ["visible", result.visible], ["logical", result.logical],
        ["rows", "\(result.rowCount)"],
      ])
      return Outcome(json: result, text: lines.joined(separator: "\n"))
    }
  }
}
