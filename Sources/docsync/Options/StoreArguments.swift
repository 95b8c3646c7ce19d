import ArgumentParser
import DocumentSync
import Foundation
import SyncDirectory

/// A store under sync, and the place of its directory.
struct StoreArguments: ParsableArguments {
  @Argument(help: "The database file.", completion: .file())
  var store: String

  @OptionGroup var place: MovedDirectory

  /// Opens the store, passes it to `body`, and closes it.
  func withManager<Result>(
    _ body: (DocumentSyncManager) async throws -> Result
  ) async throws -> Result {
    try await docsync.withManager(store, directory: place.directory, body)
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
}

/// Opens a store, passes it to `body`, and closes it, also after an error.
func withManager<Result>(
  _ store: String, directory: FolderDirectory?,
  _ body: (DocumentSyncManager) async throws -> Result
) async throws -> Result {
  let manager = try await DocumentSyncManager.open(storeAt: store, directory: directory)
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
