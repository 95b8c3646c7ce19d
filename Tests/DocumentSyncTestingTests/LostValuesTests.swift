import DocumentSync
import SyncModel
import Testing

@testable import DocumentSyncTesting

/// What the check of the journals expects, of histories that were written by hand.
@Suite struct LostValuesTests {
  /// A table is made again on a device, with another value than it had, and the only whole store that is
  /// left has a later one of another device: that one stands, and what the device had before is in its
  /// journal no more.
  @Test func aValueThatWasOverwrittenUnseenIsNotMissed() async throws {
    let notes = FleetTable(
      name: "note",
      columns: [
        FleetColumn(name: "id", type: .text), FleetColumn(name: "body", type: .text),
      ], key: [0])
    let time: Int64 = 1_700_000_000_000
    func edit(_ statements: [String], _ time: Int64, remade: SQLName? = nil) -> FleetEdit {
      FleetEdit(
        statements: statements, hasForeignKeys: true, time: time, salt: 2, remade: remade)
    }
    var plan = FleetPlan(
      seed: 1, schema: FleetSchema(tables: [notes]), start: [], devices: [1, 2],
      usesManagers: true,
      steps: [
        .edit(device: 2, edit(["INSERT INTO note (id, body) VALUES ('a', 'first')"], time)),
        .edit(
          device: 1, edit(["INSERT INTO note (id, body) VALUES ('a', 'later')"], time + 2000)),
        .sync(device: 2, time: time + 1000, salt: 3),
        .edit(
          device: 2,
          edit(
            ["DROP TABLE note"] + notes.sql + [
              "INSERT INTO note (id, body) VALUES ('a', 'unseen')"
            ], time + 3000, remade: "note")),
      ])
    var thresholds = SyncThresholds()
    thresholds.windowCount = 2
    thresholds.ownInterval = 1
    thresholds.looseCount = 3
    thresholds.tailCount = 1
    thresholds.mergeCount = 2
    thresholds.wholeStoreCount = 1
    thresholds.wholeStoreBytes = 1
    plan.circumstances.borders = FleetCircumstances.Borders(
      rowsPerChangeSet: 1, bytesPerChangeSet: 1, rowsPerTransaction: 100_000, stampBlockBytes: 200,
      fetchWindowBytes: 1, keptChangeSetBytes: 1_048_576,
      thresholds: thresholds)
    let outcome = try await FleetRun.carryOut(plan)
    #expect(outcome.failure == nil)
    #expect(outcome.acceptedStatements == 5)
  }
}
