import DocumentSync
import SyncModel
import Testing

@testable import DocumentSyncTesting

/// What the checks expect of a table that is made again, where the only whole store that is left has
/// more than the device has applied: of histories that were written by hand.
@Suite struct RemadeTableTests {
  private static let time: Int64 = 1_700_000_000_000

  /// Folders, and notes in them whose folder is set to NULL when it is deleted.
  private static let folders = FleetTable(
    name: "folder",
    columns: [FleetColumn(name: "id", type: .text), FleetColumn(name: "title", type: .text)],
    key: [0])
  private static let notes: FleetTable = {
    var notes = FleetTable(
      name: "note",
      columns: [FleetColumn(name: "id", type: .text), FleetColumn(name: "folder", type: .text)],
      key: [0])
    notes.references = [
      FleetReference(
        columns: [1], parent: "folder", parentColumns: [0], parentNames: ["id"],
        onDelete: .setNull, onUpdate: .noAction, isDeferred: false)
    ]
    return notes
  }()

  /// Two devices, with thresholds so small that a synchronization of the first that publishes several
  /// rows leaves one whole store.
  private func plan(_ steps: [FleetStep]) -> FleetPlan {
    var plan = FleetPlan(
      seed: 1, schema: FleetSchema(tables: [Self.folders, Self.notes]),
      start: [
        "INSERT INTO folder (id, title) VALUES ('s', 'start'), ('t', 'start')",
        "INSERT INTO note (id, folder) VALUES ('n', 's'), ('m', 't')",
      ], devices: [1, 2], usesManagers: true, steps: steps)
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
      fetchWindowBytes: 1, keptChangeSetBytes: 1_048_576, thresholds: thresholds)
    return plan
  }

  private func edit(
    _ device: Int, after seconds: Int64, _ statements: [String], remade: SQLName? = nil
  ) -> FleetStep {
    .edit(
      device: device,
      FleetEdit(
        statements: statements, hasForeignKeys: false, time: Self.time + 1000 * seconds, salt: 2,
        remade: remade))
  }

  private func sync(_ device: Int, after seconds: Int64) -> FleetStep {
    .sync(device: device, time: Self.time + 1000 * seconds, salt: 3)
  }

  /// The second device makes the folders again, with these rows.
  private func remake(after seconds: Int64, _ rows: String) -> FleetStep {
    edit(
      2, after: seconds,
      ["DROP TABLE folder"] + Self.folders.sql
        + ["INSERT INTO folder (id, title) VALUES \(rows)"], remade: "folder")
  }

  /// The later value of another device stands, and what the device had before it overwrote that unseen is
  /// in its journal no more.
  @Test func aValueThatWasOverwrittenUnseenIsNotMissed() async throws {
    let outcome = try await FleetRun.carryOut(
      plan([
        edit(2, after: 0, ["INSERT INTO folder (id, title) VALUES ('a', 'first')"]),
        edit(1, after: 2, ["INSERT INTO folder (id, title) VALUES ('a', 'later')"]),
        sync(2, after: 1),
        remake(after: 3, "('a', 'unseen'), ('s', 'start'), ('t', 'start')"),
      ]))
    #expect(outcome.failure == nil)
    #expect(outcome.acceptedStatements == 5)
  }

  /// What another device has edited or deleted meanwhile stands. Until that arrives, the table is as the
  /// program has left it, and what refers to its rows is shown accordingly.
  @Test(
    arguments: [
      "UPDATE folder SET title = 'other' WHERE id = 's'", "DELETE FROM folder WHERE id = 's'",
    ], ["('s', 'unseen'), ('t', 'seen')", "('t', 'seen')"])
  func whatOthersHaveSaidMeanwhileIsNotUndone(statement: String, rows: String) async throws {
    let further = "INSERT INTO folder (id, title) VALUES ('f', ''), ('g', ''), ('h', ''), ('i', '')"
    let outcome = try await FleetRun.carryOut(
      plan([
        edit(1, after: 0, [statement, "DELETE FROM note WHERE folder = 's'", further]),
        sync(1, after: 1), remake(after: 2, rows), sync(2, after: 3),
        edit(2, after: 4, ["INSERT INTO note (id, folder) VALUES ('o', 's')"]),
        sync(2, after: 5),
      ]))
    #expect(outcome.failure == nil)
    #expect(outcome.acceptedStatements == 7)
  }
}
