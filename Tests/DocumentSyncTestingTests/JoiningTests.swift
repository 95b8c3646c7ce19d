import SyncModel
import Testing

@testable import DocumentSyncTesting

/// A sample of what `swift run fleet --joining` does at length.
@Suite struct JoiningTests {
  @Test(arguments: UInt64(1)...24)
  func nothingIsLostAndReferencesLeadToTheSameRows(seed: UInt64) async throws {
    let report = try await Joining.run(seed: seed)
    #expect(report.failure == nil)
  }

  /// The seeds draw what the checks are for.
  @Test func allIsDrawn() throws {
    let plans = try (UInt64(1)...200).map { try JoiningPlan(seed: $0, features: .all) }
    func share(_ isDrawn: (JoiningPlan) -> Bool) -> Int { plans.filter(isDrawn).count }
    #expect(share(\.isCopy) > 60 && share { !$0.isCopy } > 40)
    #expect(share(\.prefersDocument) > 60 && share { !$0.prefersDocument } > 40)
    #expect(share(\.isCreatedTwice) > 20)
    #expect(share { !$0.careless.isEmpty } > 10)
    #expect(share { $0.schema.markTables.contains(where: \.isUnique) } > 4)
    #expect(share { !$0.schema.markTables.isEmpty } > 20)
    #expect(share { plan in plan.formerEdits.contains { $0.contains("defer_foreign_keys") } } > 40)
  }

  /// The checks see what they are for, in rows that are made up.
  @Test(arguments: [
    "DELETE FROM child WHERE token = 'f2'", "UPDATE child SET parent = 1 WHERE token = 'f2'",
    "UPDATE child SET a = 'other' WHERE token = 'f2'", "DELETE FROM parent WHERE token = 'd1'",
    "INSERT INTO parent VALUES (9, 'new', 'x1')", "UPDATE child SET own = 2 WHERE token = 'f2'",
    "UPDATE parent SET a = 'x' WHERE token = 'd1'",
  ])
  func aWrongRowIsFound(statement: String) throws {
    var schema = FleetSchema(tables: [
      FleetTable(
        name: "parent",
        columns: [
          FleetColumn(name: "id", type: .integer), FleetColumn(name: "a", type: .text),
          FleetColumn(name: "token", type: .text),
        ], key: [0], hasSurrogateKey: true),
      FleetTable(
        name: "child",
        columns: [
          FleetColumn(name: "id", type: .integer), FleetColumn(name: "a", type: .text),
          FleetColumn(name: "parent", type: .integer),
          FleetColumn(name: "own", type: .integer, isLocal: true),
          FleetColumn(name: "token", type: .text),
        ], key: [0], hasSurrogateKey: true),
    ])
    schema.tables[1].references = [
      FleetReference(
        columns: [2], parent: "parent", parentColumns: [0], parentNames: ["id"],
        onDelete: .noAction, onUpdate: .noAction, isDeferred: false)
    ]
    func database(_ statements: [String]) throws -> FleetSQLite {
      let database = try FleetSQLite(":memory:")
      for statement in schema.sql + statements { try database.run(statement) }
      return database
    }
    let document = try database(["INSERT INTO parent VALUES (1, 'one', 'd1')"])
    let former = try database([
      "INSERT INTO parent VALUES (1, 'two', 'f1')", "INSERT INTO child VALUES (1, 'c', 1, 1, 'f2')",
    ])
    let before = try JoiningCheck.Before(document: document, former: former, schema)
    let merged = [
      "INSERT INTO parent VALUES (1, 'one', 'd1'), (2, 'two', 'f1')",
      "INSERT INTO child VALUES (1, 'c', 2, 1, 'f2')",
    ]
    #expect(try JoiningCheck(before, database(merged), []).run() == 1)
    #expect(throws: FleetFailure.self) {
      try JoiningCheck(before, database(merged + [statement]), []).run()
    }
  }
}
