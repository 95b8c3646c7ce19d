import ArgumentParser
import DocumentSync
import SyncStore

/// `docsync digest`
struct Digest: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Print two checksums, to compare the data of two devices.",
    discussion: """
      “visible” covers the rows that programs see, without the integer keys that may differ \
      from device to device: it is equal on two devices exactly if they show the same data. \
      “logical” also covers times of edits, deleted rows and hidden rows. Only “visible” \
      covers edits that are not synchronized yet.
      """ + examples("docsync digest notes.db"))

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
      return Outcome(json: result, lines: lines)
    }
  }
}
