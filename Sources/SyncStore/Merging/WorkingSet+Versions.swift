import SyncModel

/// Tables of the merge type `keepBoth`: the version that loses lives on as a row of its own.
extension WorkingSet {
  /// Notes, before a change is merged, the version that will lose and the version that the change
  /// replaces.
  ///
  /// A change names the version that it replaces. If the row has that version, nothing is lost.
  /// Otherwise the two were made without knowledge of each other: since change sets are applied in
  /// causal order, the version of the row is not older than the named one.
  func noteVersions(_ change: Change, of row: WorkingRow) {
    let table = session.schema[row.key.table]
    let precedes = session.clients.precedes
    guard !change.action.isDeletion,
      let incoming = change.cells.map(\.stamp).max(by: precedes)
    else { return }
    if let replaced = change.replaces {
      session.losingVersions.replace(.init(row: row.key, stamp: replaced))
    }
    let present = row.state.version(in: table, precedes: precedes)
    guard row.isLiving, present != incoming else { return }
    // Compares the times alone: several devices may have inserted the row in which a version lives
    // on.
    if let replaced = change.replaces, replaced.time == present.time { return }
    if change.action == .insert {
      guard row.state.existence == .inserted,
        change.stamp.time != row.state.existenceStamp.time
      else { return }
    }
    var values = row.values
    for cell in change.cells { values[cell.column] = cell.value }
    guard values != row.values else { return }
    let isLater = precedes(present, incoming)
    session.losingVersions.lose(
      .init(row: row.key, stamp: isLater ? present : incoming), isLater ? row.values : values)
  }
}

/// The rows in which losing versions live on. They are ordinary rows: each device that finds two
/// versions inserts and publishes them, unless it has the row already. The version determines their
/// identities and the time of their insertion, so that all devices insert the same.
struct CopiedVersions {
  let session: StoreSession
  let edits: LocalEdits

  /// Inserts the rows of versions that have lost, and deletes the rows of versions that have been
  /// replaced since, unless these rows were edited or are referred to.
  ///
  /// - Parameter attempt: Runs an edit as a whole, or not at all if it is refused. A version whose
  ///   edit is refused is in the journal only.
  func settle(attempt: (() throws -> Void) throws -> Void) throws {
    let versions = session.losingVersions
    session.losingVersions = LosingVersions()
    for version in versions.replaced { try attempt { try withdraw(version) } }
    for (version, values) in versions.lost {
      try attempt { try insert(version, values) }
    }
  }

  private func insert(_ version: LosingVersions.Version, _ values: [Value?]) throws {
    let table = session.schema[version.row.table]
    let (copy, key) = try name(of: version)
    guard try state(of: copy) == nil else { return }
    let cells = table.cellPositions.compactMap { position in
      (key?.column == position ? key?.value : values[position]).map { (position, $0) }
    }
    try edits.insert(cells, as: copy, at: HybridTime(rawValue: version.stamp.time).milliseconds)
  }

  private func withdraw(_ version: LosingVersions.Version) throws {
    let (copy, _) = try name(of: version)
    let time = HybridTime(rawValue: version.stamp.time).milliseconds
    guard let state = try state(of: copy), state.existence == .inserted, state.exceptions.isEmpty,
      HybridTime(rawValue: state.cellStamp.time).milliseconds == time
    else { return }
    try edits.delete(copy)
  }

  /// Returns whether a change inserts or deletes such a row against the opposite change of another
  /// device, which knew fewer or more versions. No person made either edit.
  static func isMade(
    by change: WorkingSet.Change, _ row: WorkingRow, _ session: StoreSession
  ) throws -> Bool {
    // Every change asks this: the rest would copy the table's schema.
    guard session.schema[row.key.table].mergeType == .keepBoth else { return false }
    let table = session.schema[row.key.table]
    guard try canBeCopy(row.key, in: table) else { return false }
    switch (change.action, row.state.existence) {
    case (.insert, .deleted):
      // An insertion that is later than a known version brings an edited row back to life.
      let known = row.state.version(in: table, precedes: session.clients.precedes)
      return change.stamp.time <= known.time
        && session.clients.precedes(change.stamp, row.state.existenceStamp)
    case (.delete, .inserted), (.erase, .inserted):
      return row.state.exceptions.isEmpty
        && row.state.cellStamp.time == row.state.existenceStamp.time
    default: return false
    }
  }

  /// Returns whether a row may be one in which a version lives on. In a table with surrogate
  /// identities, only rows from before syncing are known not to be.
  private static func canBeCopy(_ row: RowKey, in table: TableSchema) throws -> Bool {
    guard table.identity != .surrogate else { return table.originalKey(of: row.identity) == nil }
    guard case .text(let key) = try IdentityEncoding.decode(row.identity, count: 1)[0] else {
      return false
    }
    let end = key.suffix(11)
    return end.starts(with: Array(" (".utf8)) && end.last == UInt8(ascii: ")")
  }

  private func state(of row: RowKey) throws -> RowState? {
    let access = try session.access(row.table)
    return try access.stamps.state(of: access.fingerprint(row.identity))
  }

  /// Returns the identity of the row in which a version lives on, and the row's key if that is a
  /// cell as well.
  private func name(
    of version: LosingVersions.Version
  ) throws -> (RowKey, (column: Int, value: Value)?) {
    let (key, stamp) = (version.row, session.clients.stamp(version.stamp))
    let table = session.schema[key.table]
    var bytes = Array("copy of a version".utf8) + Array(table.wireName.text.utf8)
    withUnsafeBytes(of: stamp.time.rawValue.bigEndian) { bytes.append(contentsOf: $0) }
    bytes += stamp.client.bits.bytes + key.identity.bytes
    let hash = ContentHash(of: bytes)
    guard table.identity != .surrogate else {
      return (
        RowKey(table: key.table, identity: RowIdentity(bytes: Array(hash.bytes.prefix(16)))), nil
      )
    }
    let position = table.identityPositions[0]
    guard case .text(let original) = try IdentityEncoding.decode(key.identity, count: 1)[0] else {
      throw LocalEdits.Refusal(
        message:
          "A row of \(quoted(table.name)) has a key that is not text, so it cannot be copied.")
    }
    let value = Value.text(original + Array(" (\(hash.description.prefix(8)))".utf8))
    let column = table.columns[position]
    return (
      RowKey(
        table: key.table,
        identity: IdentityEncoding.encode([value], collations: [column.keyCollation])),
      column.isLoose ? (position, value) : nil
    )
  }
}
