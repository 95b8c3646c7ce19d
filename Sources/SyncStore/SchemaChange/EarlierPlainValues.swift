import GRDB
import SyncModel

/// Plain values in stores of earlier builds.
extension StoreSession {
  /// The rules by which plain values are noted. Builds that noted 1 took a plain value and a reference with one number for the same
  /// value of an index with a condition or expressions.
  static let plainValuesVersion: [UInt8] = [2]

  /// Notes, once, plain values that earlier versions did not note, and shows rows that they hid.
  func settleEarlierPlainValues() throws {
    let version = try MetaTable.read(.plainValues, database)
    guard version != Self.plainValuesVersion else { return }
    if version == nil { try showRowsHiddenByPlainValues() }
    if schema.tables.contains(where: \.hasEvaluatedReferences) {
      try RemadeTables.noteSettlingDue(database)
    }
    try MetaTable.write(.plainValues, to: Self.plainValuesVersion, database)
  }

  private func showRowsHiddenByPlainValues() throws {
    try notePlainBeginning()
    let set = WorkingSet(session: self)
    for table in schema.tables where table.foreignKeys.contains(where: { !$0.isEnforced }) {
      let reading = try SQLStatement(
        "SELECT identity FROM docsync_kept WHERE tbl = ?", on: database)
      reading.bind(Int64(table.id), at: 1)
      var found: [RowIdentity] = []
      while try reading.step() { found.append(RowIdentity(bytes: reading.bytes(at: 0))) }
      for identity in found { try set.row(RowKey(table: table.id, identity: identity)) }
    }
    _ = try Materializer(set: set).run()
  }
}

extension TableSchema {
  /// Whether a column that stands for keys is in a unique index with a condition or expressions.
  fileprivate var hasEvaluatedReferences: Bool {
    uniqueIndexes.contains { index in
      !index.isPlain
        && index.columns.contains { column in
          if let column, case .key = columns[column].domain { true } else { false }
        }
    }
  }
}
