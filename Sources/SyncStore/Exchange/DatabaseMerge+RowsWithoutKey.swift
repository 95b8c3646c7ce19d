import GRDB
import SyncModel

/// Rows with NULL in their key, which stay on the device.
extension DatabaseMerge {
  /// The rowids of a table's rows with NULL in their key that are no row of the former database, by
  /// the hashes of their values.
  final class RowidsByValues {
    /// For each hash, the first row last.
    private var rowids: [Int: [Int64]] = [:]

    /// - Parameter reading: Reads the rowids and the values, the last row first.
    init(_ reading: SQLStatement, count: Int) throws {
      while try reading.step() {
        let values = (0..<count).map { reading.value(at: $0 + 1) }
        rowids[values.hashValue, default: []].append(reading.integer(at: 0))
      }
    }

    /// Takes the first row with these values out, and returns its rowid; `nil` if there is none.
    ///
    /// - Parameter isEqual: Returns whether a row has the values.
    func take(_ values: [Value], where isEqual: (Int64) throws -> Bool) throws -> Int64? {
      let hash = values.hashValue
      guard let index = try rowids[hash]?.lastIndex(where: isEqual) else { return nil }
      return rowids[hash]?.remove(at: index)
    }
  }

  /// Inserts a row as it is, unless the store has a row with the same values: only the values can
  /// show whether the row is here already.
  func mergeWithoutKey(_ candidate: Candidate) throws {
    let (table, row) = (candidate.table, candidate.row)
    let rowid: Int64
    if let present = try takeRowWithoutKey(candidate.values, table) {
      report.equalRows += 1
      rowid = present
    } else {
      do {
        rowid = try LocalEdits(session: session).insertWithoutKey(
          localValues: candidate.values, into: try session.access(table.id),
          localKey: try freeKey(row.localKey.flatMap(Value.key), table))
      } catch let refusal as LocalEdits.Refusal {
        return try refuse(candidate, Fault(refusal))
      }
      report.insertedRows += 1
    }
    if table.localKey != nil {
      try notePlace([.integer(rowid)], of: row, table)
    } else if !row.localValues.isEmpty {
      namelessRows.append((table, row, rowid))
    }
  }

  /// Returns the rowid of a row with these values that is not another row of the former database
  /// already; `nil` if there is none.
  private func takeRowWithoutKey(_ values: [Value], _ table: TableSchema) throws -> Int64? {
    guard let rowid = table.rowidName else { return nil }
    let selection =
      "SELECT \(rowid), \(table.columns.map { quoted($0.name) }.joined(separator: ", ")) "
      + "FROM \(table.quotedName) AS t WHERE "
    let access = try session.access(table.id)
    // None of the rows that the merge inserts is among them.
    let rows =
      try rowsWithoutKey[table.id]
      ?? RowidsByValues(
        try access.statement(
          "\(selection)\(table.isWithoutKey("t")) ORDER BY \(rowid) DESC"),
        count: values.count)
    rowsWithoutKey[table.id] = rows
    let reading = try access.statement("\(selection)\(rowid) = ?")
    return try rows.take(values) { rowid in
      reading.bind(rowid, at: 1)
      guard try reading.step() else { return false }
      defer { reading.reset() }
      return values.indices.allSatisfy { reading.value(at: $0 + 1) == values[$0] }
    }
  }
}
