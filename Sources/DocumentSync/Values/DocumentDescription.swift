import Foundation
import SyncModel

/// A document as it is found in a shared directory.
public struct DocumentDescription: Hashable, Sendable {
  /// The identifier that its user chose.
  public var identifier: String
  /// The opaque name of its folder.
  package var name: DocumentName
  /// The generation that counts.
  package var generation: IntegrityKey
  /// The ordinal of that generation, from 1.
  public var ordinal: UInt64
  /// What its creator called it.
  public var description: String
  /// What its creator noted about it.
  public var userInfo: SyncUserInfo = [:]
  /// The client that began the generation.
  public var creator: ClientIdentifier
  /// When, by that client's clock, in milliseconds since 1970.
  package var createdMilliseconds: Int64
  /// When, by that client's clock.
  public var creationDate: Date { Date(milliseconds: createdMilliseconds) }
  /// Whether it was deleted.
  public var isDeleted: Bool
  /// The client that deleted it, and when; `nil` if it was not deleted.
  public var deletion: Deletion?
  /// What its folder holds; `nil` where it was not looked up.
  public var contents: Contents?

  /// What the folder of a document holds.
  public struct Contents: Hashable, Sendable {
    /// How many files of ours there are.
    public var fileCount = 0
    /// How many bytes they have.
    public var byteCount = 0
    /// The members that have a marker there, in order.
    public var clients: [ClientIdentifier] = []
    /// When one of them wrote a marker last, by its own clock, in
    /// milliseconds since 1970; `nil` if none can be read.
    package var lastSyncMilliseconds: Int64?
    /// When one of them wrote a marker last, by its own clock; `nil` if none can
    /// be read.
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
