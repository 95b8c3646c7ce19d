import ArgumentParser
import DocumentSync
import SyncDirectory

/// The confirmation of a shared directory that has files of other programs.
struct DirectoryConfirmation: ParsableArguments {
  @Flag(help: "Use a directory that is not empty, without asking.")
  var yes = false
}

/// A question before a directory is used for the first time: is it meant, although it has files of
/// other programs?
struct DirectoryQuestion {
  let path: String
  let confirmation: DirectoryConfirmation

  /// The number of names that are shown.
  private static let shown = 5

  /// Returns if the directory is empty or ours, or the user agrees; throws ``Failure`` otherwise. It
  /// changes nothing.
  func ask(_ console: Console) async throws {
    guard !confirmation.yes else { return }
    let names = try await ApplicationSyncManager(directory: FolderDirectory(root: path))
      .findOtherFiles()
    guard !names.isEmpty else { return }
    let others = names.count - Self.shown
    let list = names.prefix(Self.shown).map(printable).joined(separator: ", ")
    let sentence =
      "The directory is not empty, and docsync has not used it before. It contains \(list)"
      + (others > 0 ? " and \(others) more." : ".")
    guard ConfirmationOptions.canAsk(console) else {
      throw Failure(
        code: "directoryNotEmpty", message: sentence, path: path,
        remedy: proposal + " Nothing was changed.",
        status: .refused)
    }
    console.ask([
      sentence, "docsync would put its files beside them. " + proposal,
      "Type “yes” to use the directory as it is: ",
    ])
    guard try await ConfirmationOptions.line() == "yes" else {
      throw Failure(
        code: "directoryNotEmpty", message: "Nothing was changed.", path: path, remedy: proposal,
        status: .refused)
    }
  }

  /// A folder for docsync alone, as a sentence.
  private var proposal: String {
    let folder = shellWord((path == "/" ? "" : path) + "/DocumentSync")
    return "Give docsync a folder of its own: mkdir \(folder), then use --directory \(folder). "
      + "To use this directory as it is, add --yes."
  }
}
