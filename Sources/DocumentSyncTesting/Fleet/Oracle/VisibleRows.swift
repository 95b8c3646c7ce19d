import SyncModel

/// Reads what a device shows, with keys that differ from device to device
/// replaced by identities.
///
/// Of bookkeeping it reads which identity a key stands for, and nothing else.
struct VisibleRows {
  let database: FleetSQLite
  let schema: FleetSchema
  private var identities: [String: [Int64: RowIdentity]] = [:]
  /// The first half of the identities of rows from before syncing.
  private(set) var origins: [String: UInt64] = [:]

  init(_ database: FleetSQLite, schema: FleetSchema) throws {
    self.database = database
    self.schema = schema
    for row in try database.rows("SELECT name, id, origin FROM docsync_table") {
      guard case .text(let name) = row[0], case .integer(let id) = row[1],
        case .integer(let origin) = row[2],
        let table = schema.table(String(decoding: name, as: UTF8.self)), table.hasSurrogateKey
      else { continue }
      origins[table.name] = UInt64(bitPattern: origin)
      for entry in try database.rows("SELECT key, identity FROM docsync_id_\(id)") {
        guard case .integer(let key) = entry[0], case .blob(let identity) = entry[1] else {
          continue
        }
        identities[table.name, default: [:]][key] = RowIdentity(bytes: identity)
      }
    }
  }

  /// Adds identities to those of bookkeeping.
  mutating func add(_ keys: [Int64: RowIdentity], of table: String) {
    identities[table, default: [:]].merge(keys) { _, new in new }
  }

  /// Adds the identities of keys that have none here.
  mutating func addMissing(from other: VisibleRows) {
    for (table, keys) in other.identities {
      identities[table, default: [:]].merge(keys) { own, _ in own }
    }
  }

  /// The rows of all synchronized tables: their shared columns by name.
  func read() throws -> [OracleKey: [String: Value]] { logical(try localRows()) }

  /// The rows as the tables have them: the key's columns, then the others.
  func localRows() throws -> [String: [[Value]]] {
    var rows: [String: [[Value]]] = [:]
    for table in schema.synchronized {
      rows[table.name] = try database.rows(
        "SELECT \(table.names(columns(of: table))) FROM \(table.name)")
    }
    return rows
  }

  private func columns(of table: FleetTable) -> [Int] {
    table.key + table.shared.filter { !table.key.contains($0) }
  }

  /// The same rows with identities in place of keys.
  func logical(_ tables: [String: [[Value]]]) -> [OracleKey: [String: Value]] {
    var rows: [OracleKey: [String: Value]] = [:]
    for table in schema.synchronized {
      let columns = columns(of: table)
      for values in tables[table.name] ?? [] {
        let logical = zip(columns, values).map { logicalValue($1, column: $0, table) }
        rows[key(Array(logical.prefix(table.key.count)), table)] = Dictionary(
          uniqueKeysWithValues: zip(columns, logical).compactMap { column, value in
            table.shared.contains(column) ? (table.columns[column].name, value) : nil
          })
      }
    }
    return rows
  }

  private func key(_ values: [Value], _ table: FleetTable) -> OracleKey {
    if table.hasSurrogateKey, case .identity(let row) = values[0] {
      return OracleKey(table: table.name, identity: row)
    }
    return OracleKey(
      table: table.name,
      identity: IdentityEncoding.encode(values, collations: table.keyCollations))
  }

  private func logicalValue(_ value: Value, column: Int, _ table: FleetTable) -> Value {
    guard let parent = schema.keyTable(of: column, in: table), case .integer(let key) = value
    else { return value }
    return .identity(identity(of: key, in: parent))
  }

  /// The identity of the row with an integer key; without an entry, the one
  /// that it has had from the beginning.
  func identity(of key: Int64, in table: String) -> RowIdentity {
    identities[table]?[key]
      ?? RowIdentity(
        bytes: Bits128(high: origins[table] ?? 0, low: UInt64(bitPattern: key)).bytes)
  }
}
