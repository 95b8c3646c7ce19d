import DocumentSync
import Foundation
import GRDB

/// The notes, as a document that devices share.
final class NotesDocument: Sendable {
  /// What all devices have in common, and what this one is called.
  private static func options(device: String) -> DocumentSyncManager.Options {
    var configuration = StoreConfiguration()
    // Each device migrates its own database, and notes that itself.
    configuration.excludedTables = ["grdb_migrations"]
    return DocumentSyncManager.Options(
      application: "com.example.notes", client: device, configuration: configuration)
  }
}
