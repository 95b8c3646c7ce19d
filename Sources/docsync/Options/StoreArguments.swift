import ArgumentParser
import DocumentSync
import Foundation
import SyncDirectory

/// A store under sync, and the place of its directory.
struct StoreArguments: ParsableArguments {
  @Argument(help: "The database file.", completion: .file())
  var store: String

  @OptionGroup var place: MovedDirectory

  @OptionGroup var patience: Patience

  /// Opens the store, passes it to `body`, and closes it.
  func withManager<Result>(
    _ body: (DocumentSyncManager) async throws -> Result
  ) async throws -> Result {
    try await docsync.withManager(
      store, directory: place.directory, environment: patience.environment, body)
  }
}

/// How long a command waits for other programs that work on a database.
struct Patience: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How long to wait while another process works on the database (default: 10 s for other programs, 0 s for docsync).",
      valueName: "SECONDS"))
  var wait: Int?

  func validate() throws {
    guard let wait else { return }
    guard (0...1_000_000).contains(wait) else {
      throw ValidationError("--wait needs a number of seconds, from 0 to 1000000.")
    }
  }

  /// The share of a table's rows that no command deletes without being told to.
  private static let deletionLimit = 0.5

  /// The usual environment, with this patience.
  var environment: SyncEnvironment {
    var environment = SyncEnvironment()
    environment.deletionLimit = Self.deletionLimit
    guard let wait else { return environment }
    environment.storeInUseTimeLimit = .seconds(wait)
    environment.storeTimeLimit = .seconds(wait)
    return environment
  }
}

/// The present place of the shared directory.
struct MovedDirectory: ParsableArguments {
  @Option(
    name: .customLong("directory"),
    help: ArgumentHelp(
      "The present path of the shared directory, if it has moved.", valueName: "DIR"),
    completion: .directory)
  var path: DirectoryPath?

  /// The directory that the user named, if any.
  var directory: FolderDirectory? { path?.directory }

  /// What remedies name for a database whose directory this is.
  func commandPlace(of store: String) -> CommandPlace {
    CommandPlace(store: store, directory: path?.path, isUnderSync: true, canWait: true)
  }
}

/// Opens a store, passes it to `body`, and closes it, also after an error.
func withManager<Result>(
  _ store: String, directory: FolderDirectory?,
  environment: SyncEnvironment = SyncEnvironment(),
  _ body: (DocumentSyncManager) async throws -> Result
) async throws -> Result {
  let manager = try await DocumentSyncManager.open(
    storeAt: store, directory: directory, options: .init(environment: environment))
  let result: Result
  do {
    result = try await body(manager)
  } catch {
    try await manager.close()
    throw error
  }
  try await manager.close()
  return result
}

/// Returns the default identifier of a document: the name of the file without its extension.
func defaultDocument(for store: String) -> String {
  let name = (store as NSString).lastPathComponent
  let stem = (name as NSString).deletingPathExtension
  return stem.isEmpty ? name : stem
}
