import Foundation
import GRDB
import SyncModel

/// The data that would be lost if a store were taken out of sync: only the bookkeeping contains
/// them.
public struct RemovalLoss: Hashable, Sendable {
  /// The parked rows.
  public var parked: [ParkedRow] = []
  /// The numbers of rows that other devices have in tables, and in columns as `table.column`, that
  /// this store does not have.
  public var unknownRows: [SQLName: Int] = [:]
  /// Change sets of other devices that were received and could not be applied yet.
  public var waitingChangeSets = 0
  /// Questions without an answer.
  public var openConflicts = 0
  /// Entries of the conflict journal, open ones among them.
  public var conflicts = 0
  /// Edits that are not sealed yet. The rows themselves stay.
  public var unsealedEdits = 0
  /// Change sets that were not published. The rows themselves stay.
  public var unpublishedChangeSets = 0
  /// Edits that are too large to be sent. The rows themselves stay.
  public var heldEdits = 0

  /// Creates a report of no loss.
  package init() {}

  /// Whether there is anything that the user should confirm: rows that no table of this store
  /// shows, or a question. Parked rows that were deleted do not count.
  public var needsConfirmation: Bool {
    parked.contains { $0.reason != .deleted } || !unknownRows.isEmpty || waitingChangeSets > 0
      || openConflicts > 0
  }

  /// Whether rows or change sets are in the bookkeeping alone.
  var holdsRows: Bool { !parked.isEmpty || !unknownRows.isEmpty || waitingChangeSets > 0 }

  /// Whether there are edits that other devices do not have.
  public var hasUnpublishedEdits: Bool { unsealedEdits > 0 || unpublishedChangeSets > 0 }
}
