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
        logicalKeys = try Self.logical(batch, columns, session)
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
      _ batch: EditLog.Batch, _ columns: [ColumnSchema], _ session: StoreSession
    ) throws -> [ValueColumn] {
      try zip(batch.keys, columns).map { key, column in
        var logical = ValueColumn()
        for row in 0..<key.count {
          if case .key(let table) = column.domain, !batch.rows[row].isPresent,
            let local = Value.key(key[row])
          {
            let access = try session.access(table)
            logical.append(
              try access.identity(ofKeyInUse: local, countsUnseen: true) == nil
                ? key[row] : .identity(access.earlierIdentity(ofLocalKey: local)))
          } else {
            let value = try session.exported(key[row], column)
            try session.plainKeys.note(value, in: column)
            logical.append(value)
          }
        }
        return logical
      }
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
