import Foundation
import SyncModel

/// The state of a document on this device.
public enum DocumentSyncState: Hashable, Sendable {
  /// Not under sync, as far as the manager knows.
  case unregistered
  /// A call is looking for the document, creating it or downloading it.
  case registering
  /// Under sync.
  case registered
  /// The delegate was asked about the document, and has not answered yet.
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
  /// The deletion of a document, or the removal of a client.
  public struct Deletion: Hashable, Sendable {
    /// The client that did it.
    public var client: ClientIdentifier
    /// The name of that client; `nil` if unknown.
    public var clientDescription: String?
    /// When it did so, by its own clock, in milliseconds since 1970; `nil`
    /// while the tombstone cannot be read.
    package var milliseconds: Int64?
    /// When it did so, by its own clock; `nil` while the tombstone cannot be
    /// read.
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
