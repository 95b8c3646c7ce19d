import Foundation
import SyncModel

/// A change set that this store made.
package struct SealedChangeSet: Hashable, Sendable {
  /// The client as which it was sealed.
  package var client: ClientIdentifier
  /// Its number, from 1.
  package var number: UInt64
  /// The hash of its file.
  package var hash: ContentHash
  /// The length of its file in bytes.
  package var byteCount: Int
  /// The number of rows that it changes.
  package var rowCount: Int
  /// Whether it is known to be in the shared directory.
  package var isPublished: Bool
  /// Whether the store still has its bytes.
  package var isKept: Bool

  /// Creates a sealed change set from its parts.
  package init(
    client: ClientIdentifier, number: UInt64, hash: ContentHash, byteCount: Int, rowCount: Int,
    isPublished: Bool, isKept: Bool = true
  ) {
    self.client = client
    self.number = number
    self.hash = hash
    self.byteCount = byteCount
    self.rowCount = rowCount
    self.isPublished = isPublished
    self.isKept = isKept
  }
}

/// A change set that came from the shared directory and passed its checks.
package struct ReceivedChangeSet: Sendable {
  /// The decoded change set.
  package var changeSet: SyncChangeSet
  /// The hash of its file.
  package var hash: ContentHash
  /// The bytes of its file, which the store holds while it has to wait.
  package var bytes: [UInt8]

  /// Creates a received change set from its parts.
  package init(changeSet: SyncChangeSet, hash: ContentHash, bytes: [UInt8]) {
    self.changeSet = changeSet
    self.hash = hash
    self.bytes = bytes
  }
}

/// The change sets that a store has sealed, as one transaction sees them.
package struct SealedChangeSets: Hashable, Sendable {
  /// The change sets that it made as its present client, in order. The store may no longer have the
  /// bytes of those that every member has applied.
  package var own: [SealedChangeSet]
  /// The change sets that this store, or the store of which it is a copy, has sealed as another
  /// client and that are not known to be published, in order.
  package var ancestral: [SealedChangeSet]
  /// The last change set of the present client; `nil` for none.
  package var head: VersionVector.Entry?
}

/// The result of sealing.
package struct SealReport: Hashable, Sendable {
  /// The change sets made, in order; none if there was nothing to send.
  package var changeSets: [SealedChangeSet] = []
  /// Rows that were removed from the tables, since no other device would show them.
  package var parkedRows = 0
  /// Warnings about the edits, and warnings since the last sealing that no other report contains.
  package var warnings: [SyncWarning] = []
  /// The files of the first change sets by their numbers, as far as they have few bytes, so that
  /// publishing need not read them again or compute their hashes.
  package var files: [UInt64: [UInt8]] = [:]

  /// Creates an empty report.
  package init() {}
}

/// The result of applying.
package struct ApplyReport: Hashable, Sendable {
  /// The change sets applied, in order.
  package var applied: [AppliedChangeSet] = []
  /// The change sets that wait, with those that have to be applied before them.
  package var waiting: [StoreStatus.WaitingChangeSet] = []
  /// The change sets that cannot be applied, with the reasons. No part of them was applied, nor any
  /// later change set of their authors.
  package var refused: [RefusedChangeSet] = []
  /// Rows inserted into tables.
  package var insertedRows = 0
  /// Rows whose columns changed.
  package var updatedRows = 0
  /// Rows deleted from tables.
  package var deletedRows = 0
  /// Cells and rows for which two sides had concurrent changes.
  package var conflicts = 0
  /// Warnings for the user.
  package var warnings: [SyncWarning] = []
  /// The questions that are new, or have a new side, by their numbers in the
  /// conflict journal.
  package var questions: [Int64] = []
  /// The number of questions that are open afterwards.
  package var openConflicts = 0
  /// Rows that are parked afterwards, not only those that applying parked.
  package var parkedRows = 0
  /// Tables, and columns as `table.column`, that the change sets name and this store does not have:
  /// their values are stored until the application creates them.
  package var unknownNames: Set<SQLName> = []

  /// Creates an empty report.
  package init() {}
}

/// What came of rewriting change sets as those of this store's client.
package enum RewriteOutcome: Hashable, Sendable {
  /// The store has their changes. So many were written: it had those of the others before.
  case taken(writtenCount: Int)
  /// None was taken. Rewrite them one by one: at least one of them is not to be taken for now.
  case divided
  /// The only one cannot be applied, and was not taken.
  case refused(RefusedChangeSet)
  /// The only one deletes too many rows of some tables, and was not taken.
  case stopped([StoreStatus.WaitingChangeSet.Deletions])
}

/// A change set that cannot be applied.
package struct RefusedChangeSet: Error, Hashable {
  /// The reason why a change set is refused.
  package enum Reason: Hashable, Sendable {
    /// It belongs to another document or generation.
    case foreign
    /// It does not follow the one that was applied before it.
    case fork
    /// It contains changes that no store can make.
    case contradictory
  }

  /// Its author.
  package var client: ClientIdentifier
  /// Its number among the change sets of its author, from 1 on.
  package var number: UInt64
  /// The hash of its file.
  package var hash: ContentHash
  /// The reason why it is refused.
  package var reason: Reason
  /// The reason in words.
  package var message: String
}

/// One change set in a store's history.
public struct AppliedChangeSet: Hashable, Sendable {
  /// Its author.
  public var client: ClientIdentifier
  /// Its number among the change sets of its author, from 1 on.
  public var number: UInt64
  /// The hash of its file.
  public var hash: ContentHash
  /// The number of rows that it changes.
  public var rowCount: Int
  /// The time at which it was sealed or applied here, in milliseconds since 1970.
  package var milliseconds: Int64
  /// The time at which it was sealed or applied here.
  public var date: Date { Date(milliseconds: milliseconds) }

  /// Creates an entry of the history from its parts.
  package init(
    client: ClientIdentifier, number: UInt64, hash: ContentHash, rowCount: Int,
    milliseconds: Int64
  ) {
    self.client = client
    self.number = number
    self.hash = hash
    self.rowCount = rowCount
    self.milliseconds = milliseconds
  }
}

/// The content of a store's document, reduced to two hashes.
public struct StoreDigest: Hashable, Sendable {
  /// The hash over the visible synchronized rows, in order of identity, with surrogate keys
  /// replaced by identities.
  public var visible: ContentHash
  /// The hash over the logical state beneath: stamps, tombstones, parked rows.
  public var logical: ContentHash
  /// The number of visible rows.
  public var rowCount: Int

  /// Creates a digest from its parts.
  package init(visible: ContentHash, logical: ContentHash, rowCount: Int) {
    self.visible = visible
    self.logical = logical
    self.rowCount = rowCount
  }
}

/// A consistent copy of a store, ready to be uploaded.
package struct StoreSnapshot: Hashable, Sendable {
  /// The path of the copy.
  package var path: String
  /// The change sets that it contains, including the store's own.
  package var vector: VersionVector
  /// The hash of the schema.
  package var schema: ContentHash

  /// Creates a snapshot from its parts.
  package init(path: String, vector: VersionVector, schema: ContentHash) {
    self.path = path
    self.vector = vector
    self.schema = schema
  }
}
