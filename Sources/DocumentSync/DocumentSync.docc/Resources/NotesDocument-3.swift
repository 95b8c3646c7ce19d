import DocumentSync
import Foundation
import GRDB

/// The notes, as a document that devices share.
final class NotesDocument: Sendable {
  /// The database, for the app.
  let database: DatabasePool
  /// The document.
  let manager: DocumentSyncManager

  /// Opens the document, and creates or gets it if this device does not have it yet.
  init(at path: String, through folder: String, device: String) async throws {
    // The manager has to see the schema that the app works with.
    if FileManager.default.fileExists(atPath: path) { try openNotes(at: path).close() }
    manager = try await DocumentSyncManager.register(
      storeAt: path, directory: FolderDirectory(root: folder), document: "notes",
      options: Self.options(device: device))
    database = try openNotes(at: path)
  }

  /// What all devices have in common, and what this one is called.
  private static func options(device: String) -> DocumentSyncManager.Options {
    DocumentSyncManager.Options(application: "com.example.notes", client: device)
  }

  /// Sends the edits of this device, and applies those of the others.
  func synchronize() async throws -> SyncReport {
    let report = try await manager.synchronize()
    // The manager has a connection of its own: GRDB's observers do not see what it writes.
    try await database.write { try $0.notifyChanges(in: .fullDatabase) }
    return report
  }

  /// Closes the database and the document.
  func close() async throws {
    try database.close()
    try await manager.close()
  }
}
