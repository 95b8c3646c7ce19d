import ArgumentParser
import DocumentSync
import SyncDirectory
import SyncModel

/// The options of commands that remove from a shared directory.
struct RemovalOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The shared directory.", valueName: "DIR"), completion: .directory)
  var directory: DirectoryPath

  @Option(
    help: ArgumentHelp(
      "The application that the directory must belong to (default: any).", valueName: "ID"))
  var application: String?

  @Option(
    help: ArgumentHelp(
      "This device's name for the others (default: its host name).", valueName: "NAME"))
  var client: String?

  /// The manager of the directory.
  var manager: ApplicationSyncManager {
    ApplicationSyncManager(
      directory: directory.directory, applicationIdentifier: application)
  }
}

extension RemovalReport {
  /// The number and size of the files: “3 files, 1.2 MB”.
  var sizeText: String { "\(counted(fileCount, "file")), \(byteText(byteCount))" }

  /// A heading and a line for each file that stays.
  var remainingLines: [String] {
    guard !remaining.isEmpty else { return [] }
    return [
      isPreview ? "these files do not belong to DocumentSync and will stay:" : "These files stayed:"
    ]
      + remaining.map { "  " + printable($0) }
  }
}
