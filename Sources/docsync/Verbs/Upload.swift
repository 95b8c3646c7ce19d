import ArgumentParser
import DocumentSync

/// `docsync upload`
struct Upload: StoreVerb {
  static let configuration = CommandConfiguration(
    abstract: "Upload the whole database, for others to join from.",
    discussion: "Synchronizes before and after. Joining is faster from a recent upload."
      + examples("docsync upload notes.db"))

  @OptionGroup var arguments: StoreArguments
  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    var store: String
    var wholeStore: WholeStoreJSON
  }

  func perform(_ console: Console) async throws -> Outcome {
    try await arguments.withManager { manager in
      let bar = ProgressBar(on: console)
      defer { bar.clear() }
      let uploaded = try await manager.uploadWholeStore(onProgress: bar.handler)
      bar.clear()
      return Outcome(
        json: Result(store: arguments.store, wholeStore: WholeStoreJSON(uploaded)),
        lines: [
          "Uploaded a copy of \(arguments.store), number \(uploaded.number) of this device: "
            + "\(byteText(uploaded.byteCount)) for \(byteText(uploaded.storeByteCount))."
        ])
    }
  }
}
