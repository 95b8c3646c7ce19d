import SyncModel

/// A change set, as printed with `--json`.
struct ChangeSetJSON: Encodable, Sendable {
  /// The changes to one table.
  struct Table: Encodable, Sendable {
    var table: SQLName
    var identity: String
    var rows: [Row]
  }

  /// The change of one row.
  struct Row: Encodable, Sendable {
    /// `insert`, `update` or `delete`.
    var action: String
    /// The identity in hexadecimal digits; `nil` if the key is the identity.
    var row: String?
    /// The key's values; an integer key may differ on another device.
    var key: NamedValues<ValueJSON>
    /// The columns that changed.
    var values: NamedValues<ValueJSON>
    /// When the author changed the row, in milliseconds since 1970.
    var editedMilliseconds: Int64
    /// The new identity, if the row's key was changed.
    var movedTo: String?
  }

  var client: String
  var clientName: String?
  var number: UInt64
  var hash: String
  var byteCount: Int
  var rowCount: Int
  /// The hash of the author's change set before this one.
  var previous: String?
  var dependencies: VectorJSON
  var tables: [Table]

  init(_ set: SyncChangeSet, hash: ContentHash, byteCount: Int, clientName: String?) {
    client = set.header.client.description
    self.clientName = clientName
    number = set.header.number
    self.hash = hash.description
    self.byteCount = byteCount
    rowCount = set.rowCount
    previous = set.header.previous?.description
    dependencies = VectorJSON(set.dependencies)
    tables = set.tables.map { table in
      Table(table: table.table, identity: "\(table.identity)", rows: Self.rows(table))
    }
  }

  private static func rows(_ table: TableChanges) -> [Row] {
    var next = Array(repeating: 0, count: table.columns.count)
    let moves = Dictionary(table.moves.map { ($0.row, $0.destination) }, uniquingKeysWith: { $1 })
    return (0..<table.count).map { index in
      var values: [SQLName: ValueJSON] = [:]
      for column in table.shapes[Int(table.rowShapes[index])] {
        values[table.columns[column]] = ValueJSON(table.cells[column][next[column]])
        next[column] += 1
      }
      var key: [SQLName: ValueJSON] = [:]
      var identity: String?
      if table.identity == .surrogate {
        if case .blob(let bytes) = table.keys[0][index] { identity = hexadecimal(bytes) }
        if let name = table.keyColumns.first { key[name] = ValueJSON(table.keys[1][index]) }
      } else {
        for (column, name) in table.keyColumns.enumerated() {
          key[name] = ValueJSON(table.keys[column][index])
        }
      }
      return Row(
        action: RowAction(rawValue: table.actions[index]).map {
          $0.isDeletion ? "delete" : "\($0)"
        } ?? "unknown",
        row: identity, key: NamedValues(key), values: NamedValues(values),
        editedMilliseconds: table.times[index].milliseconds,
        movedTo: moves[index].map { hexadecimal($0.bytes) })
    }
  }
}
