import SyncModel

/// A reader of the rows that a device shows. It replaces keys that differ from device to device
/// with identities.
///
/// From the bookkeeping it reads only the identities of keys and the keys that are plain values.
struct VisibleRows {
  let database: FleetSQLite
  /// The schema with the names in change sets.
  let schema: FleetSchema
  /// The schema with the names on this device.
  private let local: FleetSchema
  private var identities: [SQLName: [Int64: RowIdentity]] = [:]
  /// The first half of the identities of rows that existed before syncing began.
  private(set) var origins: [SQLName: UInt64] = [:]
  /// The former keys of rows with declared columns. A reference to a key that no row has any more
  /// leads to the row that had it.
  var formerKeys: [SQLName: [Int64: RowIdentity]] = [:]
  /// The values that the store treats as plain numbers and not as keys, by row and column.
  private var plain: [OracleKey: [Int: Value]] = [:]

  init(_ database: FleetSQLite, schema: FleetVersion) throws {
    self.database = database
    self.schema = schema.shared
    local = schema.local
    for row in try database.rows("SELECT wire, id, origin FROM docsync_table") {
      guard case .text(let name) = row[0], case .integer(let id) = row[1],
        case .integer(let origin) = row[2],
        let table = self.schema.table(SQLName(String(decoding: name, as: UTF8.self))),
        table.integerKey != nil
      else { continue }
      origins[table.name] = UInt64(bitPattern: origin)
      guard table.hasSurrogateKey else { continue }
      for entry in try database.rows("SELECT key, identity FROM docsync_id_\(id)") {
        guard case .integer(let key) = entry[0], case .blob(let identity) = entry[1] else {
          continue
        }
        identities[table.name, default: [:]][key] = RowIdentity(bytes: identity)
      }
    }
    try readPlain()
  }

  private mutating func readPlain() throws {
    let rows = try database.rows(
      "SELECT t.wire, k.identity, k.cells, t.id "
        + "FROM docsync_kept AS k JOIN docsync_table AS t ON t.id = k.tbl")
    for row in rows {
      guard case .text(let name) = row[0], case .blob(let identity) = row[1],
        case .blob(let cells) = row[2],
        let table = schema.table(SQLName(String(decoding: name, as: UTF8.self)))
      else { continue }
      let names = try database.rows(
        "SELECT wire FROM docsync_column WHERE tbl = ? ORDER BY bit", [row[3]]
      ).map { column in
        if case .text(let name) = column[0] {
          SQLName(String(decoding: name, as: UTF8.self))
        } else {
          SQLName("")
        }
      }
      let key = OracleKey(
        table: table.name, identity: table.formless(RowIdentity(bytes: identity)))
      for (bit, value) in Self.numbers(cells) where bit < names.count {
        guard let position = table.position(of: names[bit]) else { continue }
        plain[key, default: [:]][position] = value
      }
    }
  }

  /// Returns the numbers among the stored cells of a row, by bit. Each cell is a bit as a varint,
  /// a kind, and then a varint, or a length and that number of bytes.
  private static func numbers(_ bytes: [UInt8]) -> [(bit: Int, value: Value)] {
    var found: [(bit: Int, value: Value)] = []
    var index = 0
    func varint() -> UInt64 {
      var value: UInt64 = 0
      var shift: UInt64 = 0
      while index < bytes.count {
        let byte = bytes[index]
        index += 1
        value |= UInt64(byte & 127) << shift
        shift += 7
        if byte < 128 { break }
      }
      return value
    }
    while index < bytes.count {
      let bit = Int(varint())
      guard index < bytes.count, let kind = ValueKind(rawValue: bytes[index]) else { break }
      index += 1
      switch kind {
      case .null: break
      case .integer: found.append((bit, .integer(Int64(bitPattern: varint()))))
      case .real:
        let real = Value.real(Double(bitPattern: varint()))
        if real.referredNumber != nil { found.append((bit, real)) }
      case .text:
        let count = Int(varint())
        let text = Value.text(Array(bytes.dropFirst(index).prefix(count)))
        if text.referredNumber != nil { found.append((bit, text)) }
        index += count
      case .blob, .identity: index += Int(varint())
      }
    }
    return found
  }

  /// Adds identities to those of the bookkeeping, replacing earlier ones.
  mutating func add(_ keys: [Int64: RowIdentity], of table: SQLName) {
    identities[table, default: [:]].merge(keys) { _, new in new }
  }

  /// Adds identities to those of the bookkeeping for keys that have none.
  mutating func addMissing(_ keys: [Int64: RowIdentity], of table: SQLName) {
    identities[table, default: [:]].merge(keys) { own, _ in own }
  }

  /// Adds the identities of rows that existed before syncing began and have no other key on this
  /// device.
  mutating func addOriginals(among rows: some Sequence<OracleKey>) {
    let known = identities.mapValues { Set($0.values) }
    for row in rows {
      guard let origin = origins[row.table], let bits = Bits128(bytes: row.identity.bytes),
        bits.high == origin, known[row.table]?.contains(row.identity) != true
      else { continue }
      let key = Int64(bitPattern: bits.low)
      if identities[row.table]?[key] == nil { add([key: row.identity], of: row.table) }
    }
  }

  /// Treats numbers that referred to no row as plain values.
  mutating func addPlain(among rows: [OracleKey: [SQLName: Value]]) {
    for (key, cells) in rows {
      guard let table = schema.table(key.table) else { continue }
      for (name, value) in cells where value.referredNumber != nil {
        guard let column = table.position(of: name), schema.keyTable(of: column, in: table) != nil
        else { continue }
        plain[key, default: [:]][column] = value
      }
    }
  }

  /// Adds identities of another reader for keys that have none.
  mutating func addMissing(from other: VisibleRows) {
    for (table, keys) in other.identities { addMissing(keys, of: table) }
  }

  /// Returns the rows of all synchronized tables, with their shared columns by name.
  func read() throws -> [OracleKey: [SQLName: Value]] { logical(try localRows()) }

  /// Returns the rows as the tables have them: the key's columns, then the others, and last an
  /// integer key of a table with declared columns. Omits rows with NULL in the key, which stay on
  /// their device.
  func localRows() throws -> [SQLName: [[Value]]] {
    var rows: [SQLName: [[Value]]] = [:]
    for (table, here) in zip(schema.tables, local.tables) where !table.isLocal {
      let columns = Self.columns(of: table)
      rows[table.name] = try database.rows(
        "SELECT \(here.names(columns)) FROM \(here.name.sql)"
      ).filter { !$0.prefix(table.key.count).contains(.null) }
      if table.changesForm {
        rows[table.name] = rows[table.name]?.map { row in
          zip(columns, row).map { table.columns[$0].formless($1) }
        }
      }
    }
    return rows
  }

  /// Returns the columns of ``localRows()``, in their order.
  static func columns(of table: FleetTable) -> [Int] {
    table.key + table.shared.filter { !table.key.contains($0) }
      + (table.localKey.map { [$0] } ?? [])
  }

  /// Returns the rows with identities in place of keys.
  func logical(_ tables: [SQLName: [[Value]]]) -> [OracleKey: [SQLName: Value]] {
    var rows: [OracleKey: [SQLName: Value]] = [:]
    let keys = KeysInUse(tables, schema: schema, formerKeys: formerKeys)
    for table in schema.synchronized {
      let columns = Self.columns(of: table)
      for values in tables[table.name] ?? [] {
        var logical = zip(columns, values).map { logicalValue($1, column: $0, table, keys) }
        let key = restorePlainKey(&logical, values, columns, table)
        // A row whose key contains a former key gives way to an existing row.
        if rows[key] != nil, keys.isFollowing(values, columns, table) { continue }
        for (index, column) in columns.enumerated().dropFirst(table.key.count)
        where plain[key]?[column] == values[index] {
          logical[index] = values[index]
        }
        rows[key] = Dictionary(
          uniqueKeysWithValues: zip(columns, logical).compactMap { column, value in
            table.shared.contains(column) ? (table.columns[column].name, value) : nil
          })
      }
    }
    return rows
  }

  /// Returns the key of a row, with a number in it that the store treats as a plain value.
  private func restorePlainKey(
    _ logical: inout [Value], _ values: [Value], _ columns: [Int], _ table: FleetTable
  ) -> OracleKey {
    let count = table.key.count
    for index in 0..<count where logical[index] != values[index] {
      var candidate = logical
      candidate[index] = values[index]
      let key = key(Array(candidate.prefix(count)), table)
      guard plain[key]?[columns[index]] == values[index] else { continue }
      logical = candidate
      return key
    }
    return key(Array(logical.prefix(count)), table)
  }

  private func key(_ values: [Value], _ table: FleetTable) -> OracleKey {
    if table.hasSurrogateKey, case .identity(let row) = values[0] {
      return OracleKey(table: table.name, identity: row)
    }
    return OracleKey(
      table: table.name,
      identity: IdentityEncoding.encode(values, collations: table.keyCollations))
  }

  private func logicalValue(
    _ value: Value, column: Int, _ table: FleetTable, _ keys: KeysInUse
  ) -> Value {
    guard let parent = schema.keyTable(of: column, in: table), let key = value.referredNumber
    else { return value }
    if schema.table(parent)?.localKey != nil {
      return declaredIdentity(of: key, in: parent, keys).map { .identity($0) } ?? value
    }
    guard identities[parent]?[key] != nil || keys.rows[parent]?[key] != nil else { return value }
    return .identity(identity(of: key, in: parent))
  }

  /// Returns the identity of the row with an integer key, from its declared columns.
  private func declaredIdentity(
    of key: Int64, in name: SQLName, _ keys: KeysInUse
  ) -> RowIdentity? {
    guard let table = schema.table(name) else { return nil }
    guard let values = keys.rows[name]?[key] else { return formerKeys[name]?[key] }
    return self.key(
      zip(table.key, values).map { logicalValue($1, column: $0, table, keys) }, table
    ).identity
  }

  /// Returns the identities of rows with declared columns, by their integer keys in the tables.
  func declaredKeys() throws -> [SQLName: [Int64: RowIdentity]] {
    let keys = KeysInUse(try localRows(), schema: schema, formerKeys: [:])
    var result: [SQLName: [Int64: RowIdentity]] = [:]
    for table in schema.synchronized where table.localKey != nil {
      for key in keys.rows[table.name, default: [:]].keys {
        result[table.name, default: [:]][key] = declaredIdentity(of: key, in: table.name, keys)
      }
    }
    return result
  }

  /// Returns rows with references in place of plain numbers, where the bookkeeping cannot tell them
  /// apart: a row's own value is a number that refers to a row without a number of its own, and the
  /// stand-in of that row has the same number on this device.
  ///
  /// - Parameters:
  ///   - rows: The result of ``read()``.
  ///   - expected: The rows as the oracle shows them.
  ///   - state: The rows' own values.
  func withStandIns(
    _ rows: [OracleKey: [SQLName: Value]], expecting expected: [OracleKey: [SQLName: Value]],
    _ state: LogicalState
  ) -> [OracleKey: [SQLName: Value]] {
    var rows = rows
    for (key, shown) in rows {
      guard let table = schema.table(key.table) else { continue }
      for (name, value) in shown {
        guard let number = value.referredNumber, let column = table.position(of: name),
          let parent = schema.keyTable(of: column, in: table),
          state.rows[key]?.cells[name]?.shown == value,
          let standIn = expected[key]?[name], standIn == .identity(identity(of: number, in: parent))
        else { continue }
        rows[key]?[name] = standIn
      }
    }
    return rows
  }

  /// Returns the identity of the row with an integer key. Without an entry it is the identity from
  /// before syncing.
  func identity(of key: Int64, in table: SQLName) -> RowIdentity {
    identities[table]?[key]
      ?? RowIdentity(
        bytes: Bits128(high: origins[table] ?? 0, low: UInt64(bitPattern: key)).bytes)
  }
}
