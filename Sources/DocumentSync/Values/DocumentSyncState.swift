import Foundation
import SyncModel

/// Where a document on this device stands with its shared directory.
public enum DocumentSyncState: Hashable, Sendable {
  /// Not under sync, as far as is known.
  case unregistered
  /// Being looked for, created or fetched.
  case registering
  /// Under sync.
  case registered
  /// The delegate was asked, and has not answered yet.
  case waitingForDecision(SyncQuestion)
  /// The document was deleted. The store is as it was.
  case deleted(DocumentDescription.Deletion)
  /// The document was deleted, and another device has created it again. The
  /// store is as it was.
  case replaced
  /// This client was removed from the document. The store is as it was.
  case removed
  /// The store has left: it is an ordinary database.
  case left
}

extension DocumentDescription {
  /// The client that deleted a document or removed a client, and when.
  public struct Deletion: Hashable, Sendable {
    /// The client that did so.
    public var client: ClientIdentifier
    /// The name of that client; `nil` if it is not known.
    public var clientDescription: String?
    /// When, by its clock, in milliseconds since 1970; `nil` as long as the
    /// tombstone cannot be read.
    package var milliseconds: Int64?
    /// When, by its clock; `nil` as long as the tombstone cannot be read.
    public var date: Date? { milliseconds.map { Date(milliseconds: $0) } }

    /// Creates a deletion from its parts.
    package init(
      client: ClientIdentifier, clientDescription: String? = nil, milliseconds: Int64? = nil
    ) {
      self.client = client
      self.clientDescription = clientDescription
      self.milliseconds = milliseconds
    }
  }
}
