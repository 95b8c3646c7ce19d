import SyncModel

extension TableExport {
  /// The identities of a batch's rows, and the fingerprints by which they are found.
  struct Identities {
    /// One for each row.
    var fingerprints: [RowFingerprint]
    /// The rows in order of fingerprint.
    var order: [Int]
    /// The logical values of the key columns, if they differ from the local ones.
    var logicalKeys: [ValueColumn]?

    private var bytes: [UInt8] = []
    private var ends: [Int] = []

    init(
      _ batch: EditLog.Batch, table: TableSchema, access: TableAccess, session: StoreSession
    ) throws {
      let count = batch.rows.count
      fingerprints = []
      fingerprints.reserveCapacity(count)
      ends.reserveCapacity(count)
      let collations = table.identityPositions.map { table.columns[$0].keyCollation }
      let columns = table.identityPositions.map { table.columns[$0] }
      if columns.contains(where: { $0.domain != .plain }) {
        logicalKeys = try Self.logical(batch, access, session)
      }
      let keys = logicalKeys ?? batch.keys
      for row in 0..<count {
        let start = bytes.count
        if table.identity == .surrogate {
          bytes += try access.identity(ofLocalKey: Value.key(batch.keys[0][row]) ?? 0).bytes
        } else {
          for index in keys.indices {
            keys[index].appendKey(at: row, collation: collations[index], to: &bytes)
          }
        }
        ends.append(bytes.count)
        fingerprints.append(
          bytes.withUnsafeBytes {
            session.fingerprint(
              UnsafeRawBufferPointer(rebasing: $0[start...]), of: table.identity.kind)
          })
      }
      let fingerprints = fingerprints
      order = (0..<count).sorted { fingerprints[$0] < fingerprints[$1] }
    }

    /// Returns the logical values of the key columns. A row that is gone keeps the identity by
    /// which other devices know it, whatever became of the rows that its key refers to.
    private static func logical(
      _ batch: EditLog.Batch, _ access: TableAccess, _ session: StoreSession
    ) throws -> [ValueColumn] {
      let columns = access.table.identityPositions.map { access.table.columns[$0] }
      var logical = columns.map { _ in ValueColumn() }
      for row in batch.rows.indices {
        let local = batch.keys.map { $0[row] }
        let values =
          try batch.rows[row].isPresent
          ? access.logicalKey(local) : goneKey(local, columns, access, session)
        for (index, value) in values.enumerated() {
          if batch.rows[row].isPresent { try session.plainKeys.note(value, in: columns[index]) }
          logical[index].append(value)
        }
      }
      return logical
    }

    private static func goneKey(
      _ local: [Value], _ columns: [ColumnSchema], _ access: TableAccess, _ session: StoreSession
    ) throws -> [Value] {
      let logical = try zip(local, columns).map { value, column -> Value in
        guard case .key(let table) = column.domain, let key = Value.key(value) else {
          return try session.exported(value, column)
        }
        let parent = try session.access(table)
        return try parent.identity(ofKeyInUse: key, countsUnseen: true) == nil
          ? value : .identity(parent.earlierIdentity(ofLocalKey: key))
      }
      return try access.keyWithPlainNumbers(local, logical) ?? logical
    }

    func identity(_ row: Int) -> RowIdentity {
      RowIdentity(bytes: Array(bytes[(row == 0 ? 0 : ends[row - 1])..<ends[row]]))
    }
  }
}

extension ValueColumn {
  /// Appends the canonical form of a key's value.
  @inline(__always)
  func appendKey(at row: Int, collation: KeyCollation, to key: inout [UInt8]) {
    switch kind(at: row) {
    case .null: IdentityEncoding.appendNull(to: &key)
    case .integer: IdentityEncoding.append(integer: Int64(bitPattern: words[row]), to: &key)
    case .real: IdentityEncoding.append(real: Double(bitPattern: words[row]), to: &key)
    case .text, .blob, .identity:
      bytes.withUnsafeBytes { content in
        let content = UnsafeRawBufferPointer(rebasing: content[contentRange(at: row)])
        switch kind(at: row) {
        case .text: IdentityEncoding.append(text: content, collation: collation, to: &key)
        case .identity: IdentityEncoding.append(identity: content, to: &key)
        default: IdentityEncoding.append(blob: content, to: &key)
        }
      }
    }
  }
}
