import SyncModel
import SyncStore

/// What the tables that were made up have to show in the end: what the oracle
/// of ``Fleet`` makes of the rows that were there at the beginning, and of all
/// that was ever published, in whatever generation.
///
/// What is written again in another generation keeps its stamps, so that it
/// makes no difference that it is said twice.
struct LifeOracle {
  private let schema: FleetSchema
  private let start: LogicalState

  /// - Parameter path: The store that the document was made of.
  init(schema: FleetSchema, beginningWith path: String) throws {
    self.schema = schema
    let reader = try VisibleRows(FleetSQLite(path), schema: FleetVersion(schema))
    start = LogicalState(schema: schema, start: try reader.read(), origins: reader.origins)
  }

  /// Throws unless a device shows what it has to.
  func check(_ devices: [LifeDevice], _ ledger: LifeLedger) throws {
    var state = start
    for var set in try ledger.changeSets() {
      set.tables.removeAll { schema.table($0.table) == nil }
      state.merge(set)
    }
    let expected = try Materialization(
      of: state, schema: schema, scratch: OracleScratch(schema: schema))
    for device in devices {
      let rows = try VisibleRows(
        FleetSQLite(device.path), schema: FleetVersion(schema)
      ).read()
      let differences = FleetInvariants.differences(expected.visible, rows, schema: schema)
      guard differences.isEmpty else {
        throw FleetFailure(
          .oracle, "device \(device.number):\n" + differences.joined(separator: "\n"))
      }
    }
  }
}
