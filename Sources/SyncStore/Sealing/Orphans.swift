import GRDB
import SyncModel

/// The rows that refer to rows of a table that are gone.
struct Orphans {
  private let parent: TableSchema
  private let session: StoreSession

  init(of parent: TableSchema, session: StoreSession) {
    self.parent = parent
    self.session = session
  }

  /// Returns the local keys of those rows that a sealing has to check, by table.
  ///
  /// If a row is shown although the row that it refers to is gone, it was checked by the sealing that
  /// removed that row.
  func read(
    _ suspects: ChangeExport.Suspects
  ) throws -> [(child: TableAccess, rows: [[Value]])] {
    let freed = Set(suspects.freedKeys.filter { $0.table == parent.id }.map(\.key))
    return try session.schema.inbound(to: parent).map { key in
      let child = try session.access(key.child)
      guard !suspects.areAllOrphansSuspect, staysShown(key) else {
        return (child, try rows(referringBy: key, child))
      }
      guard !freed.isEmpty else { return (child, []) }
      return try session.goneKeys.withList(of: freed, isInteger: true) { wanted in
        (child, try rows(referringBy: key, child, where: "IN \(wanted)"))
      }
    }
  }

  /// Returns whether a reference by an integer key leaves its row shown when the row that it refers
  /// to is gone.
  private func staysShown(_ key: ForeignKey) -> Bool {
    !key.isRequired && parent.identity == .surrogate
      && key.parentColumns.map(\.folded) == [parent.localKey?.folded]
  }

  /// - Parameter condition: What follows the column of the reference in a further condition.
  private func rows(
    referringBy key: ForeignKey, _ child: TableAccess, where condition: String? = nil
  ) throws -> [[Value]] {
    let columns = key.columns.map { "c.\(quoted(child.table.columns[$0].name))" }
    let match = zip(key.parentColumns, columns).map { "p.\(quoted($0)) = \($1)" }
    let names = child.table.keyColumns.map { "c.\(quoted($0))" }
    let further = condition.map { " AND \(columns[0]) \($0)" } ?? ""
    let statement = try SQLStatement(
      """
      SELECT \((columns + names).joined(separator: ", ")) \
      FROM \(child.table.quotedName) AS c \
      WHERE \(columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))\(further) \
      AND NOT EXISTS (SELECT 1 FROM \(parent.quotedName) AS p \
      WHERE \(match.joined(separator: " AND ")))
      """, on: session.database)
    var found: [[Value]] = []
    while try statement.step() {
      if !key.isEnforced {
        // Most of these values never led to a row.
        let values = columns.indices.map { statement.value(at: $0) }
        guard try session.isKnown(values, by: key) else { continue }
      }
      found.append(names.indices.map { statement.value(at: columns.count + $0) })
    }
    return found
  }
}
