import DocumentSync
import Foundation
import GRDB

/// The notes, as a document that devices share.
final class NotesDocument: Sendable {
  /// What all devices have in common, and what this one is called.
  private static func options(device: String) -> DocumentSyncManager.Options {
    DocumentSyncManager.Options(application: "com.example.notes", client: device)
  }
}
