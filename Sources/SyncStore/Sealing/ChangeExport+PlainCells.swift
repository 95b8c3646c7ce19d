import SyncModel

extension ChangeExport {
  /// Returns the cells that refer to no row and hold a key that an edit in the log gives to a row.
  func plainCells() throws -> [StoreSession.PlainCell] {
    var found: [StoreSession.PlainCell] = []
    for parent in session.schema.tables where parent.localKey != nil {
      let plain = try session.plainKeys.keys(of: parent.id)
      guard !plain.isEmpty else { continue }
      for key in try givenKeys(parent, among: plain).sorted() {
        for child in session.schema.tables {
          for column in child.keyedPositions
          where child.columns[column].domain == .key(of: parent.id) {
            found += try session.plainCells(child, column, holding: key)
          }
        }
      }
    }
    return try session.withoutNotedReferences(found)
  }

  /// Returns the plain values that the edits in the log made keys of rows.
  private func givenKeys(_ parent: TableSchema, among plain: Set<Int64>) throws -> [Int64] {
    let access = try session.access(parent.id)
    if parent.identity == .surrogate { try access.rewrittenKeys() }
    let candidates = try plain.filter(access.hasRow).union(access.lostKeys(among: plain))
    return try candidates.filter(access.isGiven)
  }
}
