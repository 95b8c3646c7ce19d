import Foundation
import SyncModel

/// A document in a shared directory.
public struct DocumentDescription: Hashable, Sendable {
  /// The identifier that the user chose.
  public var identifier: String
  /// The opaque name of its folder.
  package var name: DocumentName
  /// The generation that counts.
  package var generation: IntegrityKey
  /// The ordinal of that generation, from 1.
  public var ordinal: UInt64
  /// The creator's name for it.
  public var description: String
  /// The creator's notes about it.
  public var userInfo: SyncUserInfo = [:]
  /// The client that began the generation.
  public var creator: ClientIdentifier
  /// When that client began the generation, by its own clock, in milliseconds
  /// since 1970.
  package var createdMilliseconds: Int64
  /// When that client began the generation, by its own clock.
  public var creationDate: Date { Date(milliseconds: createdMilliseconds) }
  /// Whether it was deleted.
  public var isDeleted: Bool
  /// The client that deleted it, and the time; `nil` if it was not deleted.
  public var deletion: Deletion?
  /// The files in its folder; `nil` if the call did not measure them.
  public var contents: Contents?

  /// The files in the folder of a document.
  public struct Contents: Hashable, Sendable {
    /// The number of DocumentSync's files.
    public var fileCount = 0
    /// The length of these files together, in bytes.
    public var byteCount = 0
    /// The clients that have a RecentSync in the folder, in order.
    public var clients: [ClientIdentifier] = []
    /// When the last RecentSync was written, by its author's clock, in
    /// milliseconds since 1970; `nil` if none can be read.
    package var lastSyncMilliseconds: Int64?
    /// When the last RecentSync was written, by its author's clock; `nil` if
    /// none can be read.
    public var lastSyncDate: Date? { lastSyncMilliseconds.map { Date(milliseconds: $0) } }
    /// Files that do not belong to DocumentSync, by their paths below the root.
    public var foreign: [String] = []

    /// Creates the contents of an empty folder.
    package init() {}
  }

  /// Creates a description from its parts.
  package init(
    identifier: String, name: DocumentName, generation: IntegrityKey, ordinal: UInt64,
    description: String, creator: ClientIdentifier, createdMilliseconds: Int64, isDeleted: Bool
  ) {
    self.identifier = identifier
    self.name = name
    self.generation = generation
    self.ordinal = ordinal
    self.description = description
    self.creator = creator
    self.createdMilliseconds = createdMilliseconds
    self.isDeleted = isDeleted
  }
}
