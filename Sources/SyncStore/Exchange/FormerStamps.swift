import GRDB
import SyncModel

/// The stamps of the rows of a store that is merged into a document, if the
/// store's document and this one stem from the same document.
///
/// Two documents are unrelated unless they share the secret key of row fingerprints.
struct FormerStamps {
  private let session: StoreSession

  /// Creates the stamps of a store's rows; returns `nil` if the store's document and that of
  /// `other` are unrelated.
  init?(_ former: StoreSession, other: Database) throws {
    guard
      let key = try MetaTable.read(.fingerprintKey, former.database),
      try MetaTable.read(.fingerprintKey, other) == key
    else { return nil }
    session = former
  }

  private func state(_ row: RowIdentity, _ table: TableSchema) throws -> RowState? {
    guard let here = session.schema.table(named: table.name),
      here.identityDescription == table.identityDescription
    else { return nil }
    let access = try session.access(here.id)
    return try access.stamps.state(of: access.fingerprint(row))
  }

  /// Returns the stamp of a cell, by the name of its column.
  func stamp(of row: RowIdentity, _ table: TableSchema, column: SQLName) throws -> Stamp {
    guard let state = try state(row, table),
      let position = session.schema.table(named: table.name)?.columns.firstIndex(where: {
        $0.name.folded == column.folded
      })
    else { return .zero }
    return session.clients.stamp(state.stamp(of: position))
  }

  /// Returns the newest stamp of a row.
  func latest(of row: RowIdentity, _ table: TableSchema) throws -> Stamp {
    guard let state = try state(row, table) else { return .zero }
    let stamps = [state.existenceStamp, state.cellStamp] + state.exceptions.map(\.stamp)
    return stamps.map(session.clients.stamp).max() ?? .zero
  }
}
