import SyncModel
import SyncStore

/// The oracle for the random tables. As in ``Fleet``, it computes the rows that devices must show
/// at the end from the rows at the beginning and all change sets ever published, in any generation.
///
/// Changes that devices publish again in another generation keep their stamps, so that the
/// repetition makes no difference.
struct LifeOracle {
  private let schema: FleetSchema
  private let start: LogicalState

  /// - Parameter path: The store from which the document was created.
  init(schema: FleetSchema, beginningWith path: String) throws {
    self.schema = schema
    let reader = try VisibleRows(FleetSQLite(path), schema: FleetVersion(schema))
    start = LogicalState(schema: schema, start: try reader.read(), origins: reader.origins)
  }

  /// Throws unless every device shows the expected rows.
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
