import GRDB
import SyncModel

/// The rows that a synchronization may delete from a table without being told to.
package struct DeletionLimit: Hashable, Sendable {
  /// The greatest share of the rows, from 0 to 1.
  package let share: Double
  /// The number of rows from which on a table has a limit.
  package var leastRows = 100

  /// Creates a limit from the greatest share of the rows. What is below 0, or no number, counts as 0.
  package init(share: Double) { self.share = share > 0 ? min(share, 1) : 0 }

  /// Returns whether a number of deletions is over the limit.
  func isOver(deletedCount: Int, rowCount: Int) -> Bool {
    rowCount >= leastRows && Double(deletedCount) > share * Double(rowCount)
  }

  /// The number of deletions that is over the limit in no table.
  fileprivate var leastCount: Int { Int((share * Double(leastRows)).rounded(.down)) }
}

/// The brake of one synchronization: it finds the received change sets that delete too many rows of
/// a table.
///
/// The deletions of all change sets that the synchronization applies count together. Rows that a
/// change set inserts into a table make up for as many that it deletes from it: new keys, or new rows
/// in place of the former ones, empty no table.
///
/// A change set that is stopped waits in the inbox, as do its author's later ones, until a
/// synchronization without a brake applies them; see ``UnconfirmedDeletions``.
package final class DeletionBrake {
  private let limit: DeletionLimit
  /// The deletions in each table that were let pass.
  private(set) var passed: [SQLName: Int] = [:]

  /// Creates the brake of a synchronization that has not applied anything yet.
  package init(_ limit: DeletionLimit) { self.limit = limit }

  /// Takes back that change sets were let pass, which then were not applied.
  func goBack(to passed: [SQLName: Int]) { self.passed = passed }

  /// Returns whether the brake may stop one of these change sets: whether they are to be weighed.
  /// If not, lets them pass.
  func mayStop(_ received: [ReceivedChangeSet]) -> Bool {
    var counts = passed
    for set in received {
      for changes in set.changeSet.tables where changes.deletionCount > 0 {
        counts[changes.table, default: 0] += changes.deletionCount
      }
    }
    guard !counts.values.contains(where: { $0 > limit.leastCount }) else { return true }
    passed = counts
    return false
  }

  /// Returns the change sets that delete rows of a table of which too many would go, and lets the
  /// others pass.
  func weigh(
    _ received: [ReceivedChangeSet], _ session: StoreSession
  ) throws -> [UnconfirmedDeletions.ChangeSet] {
    let vector = try session.clients.vector()
    let counts = try received.map { set in
      let header = set.changeSet.header
      return header.number > vector.number(of: header.client)
        ? try Self.deletions(in: set.changeSet, session) : [:]
    }
    let totals = counts.reduce(into: [SQLName: Int]()) { $0.merge($1, uniquingKeysWith: +) }
    var rowCounts: [SQLName: Int] = [:]
    for (name, count) in totals {
      guard let table = session.schema.table(wireName: name) else { continue }
      let before = passed[name] ?? 0
      let rowCount = try Self.rowCount(of: table, session) + before
      if limit.isOver(deletedCount: before + count, rowCount: rowCount) {
        rowCounts[name] = rowCount
      }
    }
    var stopped: [UnconfirmedDeletions.ChangeSet] = []
    for (set, deleted) in zip(received, counts) {
      let tables = deleted.filter { rowCounts[$0.key] != nil }
      guard !tables.isEmpty else {
        passed.merge(deleted, uniquingKeysWith: +)
        continue
      }
      stopped.append(
        UnconfirmedDeletions.ChangeSet(
          hash: set.hash.description,
          tables: tables.sorted { $0.key < $1.key }.map { name, count in
            StoreStatus.WaitingChangeSet.Deletions(
              table: session.schema.table(wireName: name)?.name.text ?? name.text,
              deletedCount: count, rowCount: rowCounts[name] ?? 0)
          }))
    }
    return stopped
  }

  private static func rowCount(of table: TableSchema, _ session: StoreSession) throws -> Int {
    try Int.fetchOne(
      session.database, sql: "SELECT count(*) FROM main.\(table.quotedName)") ?? 0
  }

  /// Returns how many rows that are shown here a change set deletes, by table, less those that it
  /// inserts.
  private static func deletions(
    in changeSet: SyncChangeSet, _ session: StoreSession
  ) throws -> [SQLName: Int] {
    var counts: [SQLName: Int] = [:]
    for changes in changeSet.tables where changes.deletionCount > 0 {
      guard let table = session.schema.table(wireName: changes.table),
        table.knowsRows(as: changes)
      else { continue }
      let access = try session.access(table.id)
      var count = -changes.insertionCount
      for row in 0..<changes.count where changes.isDeletion(row) {
        if try access.shown(access.identity(of: row, in: changes)) != nil { count += 1 }
      }
      if count > 0 { counts[changes.table, default: 0] += count }
    }
    return counts
  }
}

extension TableChanges {
  fileprivate func isDeletion(_ row: Int) -> Bool {
    RowAction(rawValue: actions[row])?.isDeletion ?? false
  }

  fileprivate var insertionCount: Int {
    actions.reduce(0) { $0 + ($1 == RowAction.insert.rawValue ? 1 : 0) }
  }

  fileprivate var deletionCount: Int {
    actions.reduce(0) { $0 + (RowAction(rawValue: $1)?.isDeletion == true ? 1 : 0) }
  }
}
