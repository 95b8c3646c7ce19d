import SyncModel

/// Tables in which the version that loses lives on as a row of its own.
extension WorkingSet {
  /// Before a change is merged: keeps the version that will lose against
  /// another as a copy, and withdraws the copy of one that turns out to have
  /// been replaced by its own author.
  ///
  /// A change names the version that it replaces. If that is the one that is
  /// here, nothing is lost. Otherwise the two were made without knowledge of
  /// each other: since change sets are applied in causal order, the version
  /// that is here is not older than the one that is named. So every device
  /// makes the same copies, whatever came first.
  func keepVersions(_ change: Change, of row: WorkingRow) throws {
    let table = session.schema[row.key.table]
    guard !change.action.isDeletion, let first = table.cellPositions.first,
      let incoming = change.cells.first(where: { $0.column == first })?.stamp
    else { return }
    if let replaced = change.replaces { try withdrawCopy(of: row.key, replaced) }
    let present = row.state.stamp(of: first)
    guard row.isLiving, present != incoming, change.replaces != present else { return }
    if change.action == .insert, row.state.existence != .inserted { return }
    var values = row.values
    for cell in change.cells { values[cell.column] = cell.value }
    guard values != row.values else { return }
    let isLater = session.clients.precedes(present, incoming)
    try addCopy(of: row.key, isLater ? row.values : values, isLater ? present : incoming)
  }

  private func addCopy(of key: RowKey, _ values: [Value?], _ stamp: LocalStamp) throws {
    let table = session.schema[key.table]
    let (copy, keyCell) = try copyKey(of: key, stamp)
    let cells = table.cellPositions.compactMap { position in
      let value = keyCell?.column == position ? keyCell?.value : values[position]
      return value.map { (column: position, value: $0, stamp: stamp) }
    }
    let row = try row(copy)
    try merge(Change(action: .insert, stamp: stamp, cells: cells), into: row)
  }

  /// Takes back a copy: what its version said is no more, what was said of
  /// the copy itself stays.
  private func withdrawCopy(of key: RowKey, _ stamp: LocalStamp) throws {
    let (copy, _) = try copyKey(of: key, stamp)
    let table = session.schema[key.table]
    if self[copy] == nil {
      let access = try session.access(key.table)
      guard try access.stamps.state(of: access.fingerprint(copy.identity)) != nil else { return }
    }
    let row = try row(copy)
    for position in table.cellPositions where row.state.stamp(of: position) == stamp {
      row.values[position] = nil
      row.state.setStamp(.zero, of: position)
    }
    if row.state.existenceStamp == stamp {
      row.state.existence = .unsaid
      row.state.existenceStamp = .zero
    }
    row.state.normalize(of: table, precedes: session.clients.precedes)
  }

  /// The identity of the copy of a version, and its key where that is a cell
  /// as well.
  private func copyKey(
    of key: RowKey, _ stamp: LocalStamp
  ) throws -> (RowKey, (column: Int, value: Value)?) {
    let table = session.schema[key.table]
    let version = session.clients.stamp(stamp)
    var bytes = Array("copy of a version".utf8) + Array(table.wireName.text.utf8)
    withUnsafeBytes(of: version.time.rawValue.bigEndian) { bytes.append(contentsOf: $0) }
    bytes += version.client.bits.bytes + key.identity.bytes
    let hash = ContentHash(of: bytes)
    guard table.identity != .surrogate else {
      return (
        RowKey(table: key.table, identity: RowIdentity(bytes: Array(hash.bytes.prefix(16)))), nil
      )
    }
    let position = table.identityPositions[0]
    guard case .text(let original) = try IdentityEncoding.decode(key.identity, count: 1)[0] else {
      throw StoreError(
        .malformedChangeSet, path: "",
        message: "A row of \(quoted(table.name)) has a key that is no text.",
        remedy: "Give all rows text keys; a copy of a row gets a key of its own.")
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
