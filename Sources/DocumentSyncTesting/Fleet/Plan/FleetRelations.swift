import Synchronization
import SyncModel

/// What a ``FleetSchema`` has computed about its tables. A change of the tables makes it void.
final class FleetRelations: Sendable {
  private struct Found {
    var keyTables: [SQLName: [SQLName?]] = [:]
    var references: [SQLName: [FleetReference]] = [:]
  }

  private let found = Mutex(Found())

  /// Returns the table whose keys a column contains, for each column of a table.
  func keyTables(of table: FleetTable, _ compute: () -> [SQLName?]) -> [SQLName?] {
    if let known = found.withLock({ $0.keyTables[table.name] }) { return known }
    let new = compute()
    found.withLock { $0.keyTables[table.name] = new }
    return new
  }

  /// Returns the references of a table as merging treats them.
  func references(
    of table: FleetTable, _ compute: () -> [FleetReference]
  ) -> [FleetReference] {
    if let known = found.withLock({ $0.references[table.name] }) { return known }
    let new = compute()
    found.withLock { $0.references[table.name] = new }
    return new
  }
}

extension FleetRelations: Hashable {
  /// All are equal: schemas with equal tables are equal, whatever was computed.
  static func == (left: FleetRelations, right: FleetRelations) -> Bool { true }

  func hash(into hasher: inout Hasher) {}
}
