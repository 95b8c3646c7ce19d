import Crypto
import GRDB
import SyncModel

/// The computation of a store's digest. It reads every synchronized row once.
///
/// The visible digest covers, table by table in order of name, each row's identity and cells in
/// order of identity, with columns in order of name.
struct StoreDigester {
  let session: StoreSession

  func run() throws -> StoreDigest {
    var visible = SHA256()
    var logical = SHA256()
    var rowCount = 0
    for table in session.schema.tables.sorted(by: { $0.wireName < $1.wireName }) {
      update(&visible, table.wireName)
      update(&logical, table.wireName)
      rowCount += try addRows(of: table, to: &visible)
      try addStates(of: table, to: &logical)
    }
    guard let visibleHash = ContentHash(bytes: Array(visible.finalize())),
      let logicalHash = ContentHash(bytes: Array(logical.finalize()))
    else { throw DatabaseError(resultCode: .SQLITE_INTERNAL, message: "digest") }
    return StoreDigest(visible: visibleHash, logical: logicalHash, rowCount: rowCount)
  }

  private func update(_ hash: inout SHA256, _ name: SQLName) {
    var text = name.text
    text.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    hash.update(data: [0])
  }

  // MARK: - Rows

  private func addRows(of table: TableSchema, to hash: inout SHA256) throws -> Int {
    let access = try session.access(table.id)
    let columns = table.columns.enumerated().sorted {
      $0.element.wireName < $1.element.wireName
    }
    for column in columns { update(&hash, column.element.wireName) }
    // Rows are read in order of key and needed in order of identity.
    try session.database.execute(
      sql: "CREATE TEMP TABLE IF NOT EXISTS docsync_digest (identity BLOB, row BLOB); "
        + "DELETE FROM temp.docsync_digest")
    let adding = try SQLStatement(
      "INSERT INTO temp.docsync_digest VALUES (?, ?)", on: session.database)
    let names = table.keyColumns.map(quoted) + columns.map { quoted($0.element.name) }
    let reading = try SQLStatement(
      "SELECT \(names.joined(separator: ", ")) FROM \(table.quotedName)", on: session.database)
    let plain = try session.keptRows.plainValues(of: table)
    var count = 0
    while try reading.step() {
      let key = table.keyColumns.indices.map { reading.value(at: $0) }
      if key.contains(.null) { continue }
      let logicalKey = table.hasKeysInIdentity ? try access.logicalKey(key) : []
      let identity =
        table.hasKeysInIdentity
        ? access.identity(of: logicalKey) : try access.identity(ofKey: key)
      let kept = plain.isEmpty ? nil : plain[identity]
      var bytes: [UInt8] = []
      for (index, column) in columns.enumerated() {
        let value = reading.value(at: table.keyColumns.count + index)
        if let index = table.identityPositions.firstIndex(of: column.offset),
          column.element.isKeyed
        {
          append(logicalKey[index], to: &bytes)
          continue
        }
        let isPlain = kept != nil && kept?[column.offset] == value
        append(isPlain ? value : try session.exported(value, column.element), to: &bytes)
      }
      adding.bind(blob: identity.bytes, at: 1)
      adding.bind(blob: Array(SHA256.hash(data: bytes)), at: 2)
      try adding.run()
      count += 1
    }
    let sorted = try SQLStatement(
      "SELECT identity, row FROM temp.docsync_digest ORDER BY identity", on: session.database)
    while try sorted.step() {
      hash.update(bufferPointer: sorted.content(at: 0))
      hash.update(bufferPointer: sorted.content(at: 1))
    }
    try session.database.execute(sql: "DELETE FROM temp.docsync_digest")
    return count
  }

  private func append(_ value: Value, to bytes: inout [UInt8]) {
    bytes.append(value.kind.rawValue)
    switch value {
    case .null: break
    case .integer(let integer): append(UInt64(bitPattern: integer), to: &bytes)
    // Nothing in SQL tells −0.0 from 0.0: they are one value.
    case .real(let real): append(real == 0 ? 0 : real.bitPattern, to: &bytes)
    case .text(let content), .blob(let content):
      append(UInt64(content.count), to: &bytes)
      bytes.append(contentsOf: content)
    case .identity(let row):
      append(UInt64(row.bytes.count), to: &bytes)
      bytes.append(contentsOf: row.bytes)
    }
  }

  private func append(_ word: UInt64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
  }

  // MARK: - States

  private func addStates(of table: TableSchema, to hash: inout SHA256) throws {
    let access = try session.access(table.id)
    let columns = table.cellPositions.sorted {
      table.columns[$0].wireName < table.columns[$1].wireName
    }
    try access.stamps.forEach { fingerprint, state in
      var state = state
      state.normalize(of: table, precedes: session.clients.precedes)
      // Some devices remember a row that no change ever stamped.
      if state.isUnstamped { return }
      var bytes: [UInt8] = []
      append(fingerprint.high, to: &bytes)
      append(UInt64(fingerprint.low), to: &bytes)
      let existence: RowState.Existence =
        state.existence == .unsaid && !state.isKept ? .inserted : state.existence
      bytes.append(existence.rawValue)
      append(state.existenceStamp, to: &bytes)
      append(state.erasureStamp, to: &bytes)
      for column in columns { append(state.stamp(of: column), to: &bytes) }
      hash.update(data: bytes)
    }
    let parked = try KeptRows.reading(of: table.id, session.database)
    let defaults = try AbsentValues.read(table, session.database)
    while try parked.step() {
      var bytes = parked.bytes(at: 0)
      let reason = KeptRow.Reason(rawValue: parked.text(at: 3))
      let isShown = reason?.isShown ?? false
      var cells = try KeptCells.decode(parked.bytes(at: 1)).filter {
        $0.column < table.columns.count
      }.filter { cell in
        // The plain values that a device stores depend on the keys of its rows.
        guard case .key = table.columns[cell.column].domain else { return true }
        return !isShown || table.columns[cell.column].key(cell.value) == nil
      }
      if reason == .overlaid, cells.isEmpty { continue }
      // Other devices may show it: there it has a key of its own.
      if reason == .parked(.uniqueValueTaken),
        try access.givesWay(RowIdentity(bytes: parked.bytes(at: 0)))
      {
        continue
      }
      if reason == .tombstone,
        try holdsOnlyDefaults(cells, RowIdentity(bytes: parked.bytes(at: 0)), access, defaults)
      {
        cells = []
      }
      for cell in cells.sorted(by: {
        table.columns[$0.column].wireName < table.columns[$1.column].wireName
      }) {
        append(table.columns[cell.column].inPresentForm(cell.value), to: &bytes)
      }
      bytes += parked.bytes(at: 2)
      hash.update(data: bytes)
    }
  }

  /// Returns whether all cells that are stored of a deleted row have the stamp zero and their
  /// columns' defaults. A device whose table had only key columns when the row was deleted stores
  /// no cells, and another device stores the defaults of columns that were added.
  private func holdsOnlyDefaults(
    _ cells: [(column: Int, value: Value)], _ row: RowIdentity, _ access: TableAccess,
    _ defaults: [Value]
  ) throws -> Bool {
    guard !cells.isEmpty, cells.allSatisfy({ $0.value == defaults[$0.column] }),
      let state = try access.stamps.state(of: access.fingerprint(row))
    else { return false }
    return cells.allSatisfy { state.stamp(of: $0.column) == .zero }
  }

  private func append(_ stamp: LocalStamp, to bytes: inout [UInt8]) {
    append(stamp.time, to: &bytes)
    bytes.append(contentsOf: session.clients.client(stamp.client).bits.bytes)
  }
}
