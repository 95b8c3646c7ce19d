import SyncModel
import Testing

@testable import DocumentSyncTesting

/// What a database without our triggers decides, in histories that were written by hand.
@Suite struct TwinTests {
  /// Rows of which an upsert replaces one by way of triggers, while SQLite is about to update it.
  private var schema: FleetSchema {
    let table = FleetTable(
      name: "t1",
      columns: [FleetColumn(name: "k", type: .text), FleetColumn(name: "a", type: .integer)],
      key: [0])
    var schema = FleetSchema(tables: [table])
    schema.triggers = [
      "CREATE TRIGGER trigger1 BEFORE UPDATE ON t1 BEGIN DELETE FROM t1 WHERE k = 'a'; END",
      "CREATE TRIGGER trigger2 BEFORE DELETE ON t1 BEGIN REPLACE INTO t1 (k, a) VALUES ('a', 1); END",
    ]
    return schema
  }

  private let start = [
    "INSERT INTO t1 (k, a) VALUES ('a', 0)", "INSERT INTO t1 (k, a) VALUES ('b', 3)",
  ]

  private func edit(_ statement: String) -> FleetEdit {
    FleetEdit(
      statements: [statement], hasForeignKeys: true, time: 1_700_000_000_000, salt: 2)
  }

  /// SQLite 3.40.1 puts the second row of the upsert among those of the table in a wrong place, and
  /// later takes the file for malformed, also without us. The history goes on without the edit.
  @Test(arguments: [
    (
      "INSERT INTO t1 (k, a) VALUES ('a', 2), ('c', 2) ON CONFLICT DO UPDATE SET a = excluded.a",
      true
    ),
    ("INSERT INTO t1 (k, a) VALUES ('c', 2)", false),
  ])
  func editsThatDamageTablesWithoutUsArePassedOver(
    statement: String, damages: Bool
  ) async throws {
    let alone = try FleetSQLite(":memory:")
    for statement in schema.sql + start { try alone.run(statement) }
    try alone.run(statement)
    let isDamaged = try alone.rows("PRAGMA integrity_check") != [[.text("ok")]]
    #expect(isDamaged == damages)

    let outcome = try await FleetRun.carryOut(
      FleetPlan(
        seed: 1, schema: schema, start: start, devices: [1, 2], usesManagers: false,
        steps: [
          .edit(device: 1, edit(statement)), .sync(device: 1, time: 1_700_000_001_000, salt: 3),
        ]))
    #expect(outcome.failure == nil)
    #expect(outcome.acceptedStatements == (damages ? 0 : 1))
  }

  /// SQLite 3.40.1 keeps the first rows of an update in a transaction if a STRICT table refuses the
  /// type of a later value. With our triggers it undoes the whole statement.
  @Test func updatesThatSQLiteKeepsInPartWithoutUsAreUndone() async throws {
    var table = FleetTable(
      name: "t1",
      columns: [
        FleetColumn(name: "k", type: .integer), FleetColumn(name: "a", type: .integer),
        FleetColumn(name: "b", type: .integer),
      ],
      key: [0])
    table.isStrict = true
    let schema = FleetSchema(tables: [table])
    let start = ["INSERT INTO t1 (k, a, b) VALUES (1, 1, 1), (2, 1, 9223372036854775807)"]
    let update = "UPDATE t1 SET a = 2, b = b + 1"

    let alone = try FleetSQLite(":memory:")
    for statement in schema.sql + start + ["BEGIN"] { try alone.run(statement) }
    #expect(throws: (any Error).self) { try alone.run(update) }
    #expect(
      try alone.rows("SELECT a FROM t1 ORDER BY k") == [[.integer(2)], [.integer(1)]])

    let edit = FleetEdit(
      statements: [update, "DELETE FROM t1 WHERE k = 3"], hasForeignKeys: true,
      time: 1_700_000_000_000, salt: 2)
    let outcome = try await FleetRun.carryOut(
      FleetPlan(
        seed: 1, schema: schema, start: start, devices: [1, 2], usesManagers: false,
        steps: [
          .edit(device: 1, edit), .sync(device: 1, time: 1_700_000_001_000, salt: 3),
        ]))
    #expect(outcome.failure == nil)
    #expect(outcome.refusedStatements == 1)
  }
}
