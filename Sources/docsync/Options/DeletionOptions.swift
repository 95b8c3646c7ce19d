import ArgumentParser
import DocumentSync

/// The permission to delete many rows at once.
struct DeletionOptions: ParsableArguments {
  @Flag(
    help: ArgumentHelp(
      "Also apply change sets of others that delete more than half of a table.",
      discussion:
        "Without it, such a change set waits, and so do the later ones of its device, if the table "
        + "has 100 rows or more. On a terminal you are asked."))
  var allowDeletions = false

  /// Asks whether to apply the change sets that wait because of what they delete. Returns `false` if
  /// there are none, or if there is no terminal.
  func ask(
    _ waits: [SyncReport.Wait], store: String, _ names: ClientNames, _ console: Console
  ) async throws -> Bool {
    let stopped = waits.filter { $0.reason == .manyDeletions }
    guard !allowDeletions, !stopped.isEmpty, ConfirmationOptions.canAsk(console) else {
      return false
    }
    console.ask(
      stopped.map { printable("\(store): \($0.title(names)): \($0.message).") }
        + ["Apply that? Type “yes” to go on: "])
    return try await ConfirmationOptions.line() == "yes"
  }
}
