import SyncModel
import Testing

@testable import DocumentSyncTesting

/// What the check of sealed edits expects, of histories that were written by hand.
@Suite struct EditCheckTests {
  /// Folders with integer keys, and marks whose keys hold those of folders.
  private func plan(_ statement: String) -> FleetPlan {
    var folders = FleetTable(
      name: "folder",
      columns: [
        FleetColumn(name: "id", type: .integer), FleetColumn(name: "title", type: .text),
      ], key: [0])
    folders.hasSurrogateKey = true
    var marks = FleetTable(
      name: "mark",
      columns: [
        FleetColumn(name: "folder", type: .integer), FleetColumn(name: "n", type: .integer),
        FleetColumn(name: "note", type: .text),
      ], key: [0, 1])
    marks.references = [
      FleetReference(
        columns: [0], parent: "folder", parentColumns: [0], parentNames: ["id"],
        onDelete: .cascade, onUpdate: .noAction, isDeferred: false)
    ]
    let time: Int64 = 1_700_000_000_000
    return FleetPlan(
      seed: 1, schema: FleetSchema(tables: [folders, marks]),
      start: [
        "INSERT INTO folder (id, title) VALUES (6, 'a')",
        "INSERT INTO mark (folder, n, note) VALUES (6, 1, 'b')",
      ], devices: [1, 2], usesManagers: false,
      steps: [
        .edit(
          device: 1,
          FleetEdit(statements: [statement], hasForeignKeys: false, time: time, salt: 2)),
        .restart(device: 1),
        .sync(device: 1, time: time + 1000, salt: 3),
      ])
  }

  /// A row that is left behind is named by the row that its key referred to, before the process
  /// begins again and after it.
  @Test(arguments: [
    "UPDATE folder SET id = 2 WHERE id = 6", "DELETE FROM folder WHERE id = 6",
    "REPLACE INTO folder (id, title) VALUES (6, 'c')",
  ])
  func rowsLeftBehindAreNamedAlikeAfterARestart(statement: String) async throws {
    let outcome = try await FleetRun.carryOut(plan(statement))
    #expect(outcome.failure == nil)
    #expect(outcome.acceptedStatements == 1)
  }

  /// A row gets the key of a row that the same edits deleted. They are sealed when another table has
  /// been made again, and then the row gets its former key back. In a table that keeps both
  /// versions, the change sets update the deleted row and do not insert it.
  @Test(arguments: [TableMergeType.keepBoth, .latestWins])
  func aRowMayMoveToTheKeyOfADeletedOne(mergeType: TableMergeType) async throws {
    var words = FleetTable(
      name: "word",
      columns: [FleetColumn(name: "id", type: .text), FleetColumn(name: "text", type: .text)],
      key: [0])
    words.mergeType = mergeType
    var uses = FleetTable(
      name: "use",
      columns: [FleetColumn(name: "id", type: .text), FleetColumn(name: "word", type: .text)],
      key: [0])
    uses.references = [
      FleetReference(
        columns: [1], parent: "word", parentColumns: [0], parentNames: ["id"],
        onDelete: .noAction, onUpdate: .cascade, isDeferred: false)
    ]
    let time: Int64 = 1_700_000_000_000
    func edit(_ statement: String, after delay: Int64) -> FleetStep {
      .edit(
        device: 1,
        FleetEdit(
          statements: [statement], hasForeignKeys: true, time: time + delay, salt: UInt64(delay)))
    }
    let outcome = try await FleetRun.carryOut(
      FleetPlan(
        seed: 1, schema: FleetSchema(tables: [words, uses]),
        start: ["INSERT INTO word (id, text) VALUES ('a', 'x'), ('b', 'y')"], devices: [1, 2],
        usesManagers: true,
        steps: [
          edit("DELETE FROM word WHERE id = 'b'", after: 1000),
          .remake(
            device: 1, FleetRemake(table: "use", dropsFirst: false, time: time + 2000, salt: 2)),
          edit("UPDATE word SET id = 'b' WHERE id = 'a'", after: 3000),
          .restart(device: 1),
          edit("UPDATE word SET id = 'a' WHERE id = 'b'", after: 4000),
          .sync(device: 1, time: time + 5000, salt: 3),
        ]))
    #expect(outcome.failure == nil)
    #expect(outcome.acceptedStatements == 3)
  }

  /// A row with declared columns goes unseen, and then a row is inserted with its number in the key.
  /// The store does not know any more which row had the number.
  @Test func theNumberOfADeclaredRowThatWentUnseenMayBePlain() async throws {
    var tags = FleetTable(
      name: "tag",
      columns: [
        FleetColumn(name: "id", type: .integer),
        FleetColumn(name: "name", type: .text, isNotNull: true),
      ], key: [1])
    tags.localKey = 0
    var colours = FleetTable(
      name: "colour",
      columns: [FleetColumn(name: "tag", type: .integer), FleetColumn(name: "code", type: .text)],
      key: [0])
    colours.references = [
      FleetReference(
        columns: [0], parent: "tag", parentColumns: [0], parentNames: ["id"], onDelete: .cascade,
        onUpdate: .noAction, isDeferred: false)
    ]
    let time: Int64 = 1_700_000_000_000
    func edit(_ statements: [String], after delay: Int64, remade: SQLName? = nil) -> FleetStep {
      .edit(
        device: 1,
        FleetEdit(
          statements: statements, hasForeignKeys: false, time: time + delay, salt: UInt64(delay),
          remade: remade))
    }
    let outcome = try await FleetRun.carryOut(
      FleetPlan(
        seed: 1, schema: FleetSchema(tables: [tags, colours]),
        start: ["INSERT INTO tag (id, name) VALUES (1, 'red'), (2, 'blue')"], devices: [1, 2],
        usesManagers: true,
        steps: [
          edit(["DROP TABLE tag"] + tags.sql, after: 1000, remade: "tag"),
          edit(["INSERT INTO colour (tag, code) VALUES (2, 'x')"], after: 2000),
          .sync(device: 1, time: time + 3000, salt: 3),
        ]))
    #expect(outcome.failure == nil)
    #expect(outcome.acceptedStatements == 3)
  }

  /// A row that is too large to be sent is hidden as soon as it is sealed, since another device has
  /// deleted its parent. A row that was there before has the same text.
  @Test func aHiddenRowThatIsHeldIsNoneThatWasThere() async throws {
    var items = FleetTable(
      name: "item",
      columns: [
        FleetColumn(name: "id", type: .integer), FleetColumn(name: "text", type: .text),
        FleetColumn(name: "parent", type: .integer),
      ], key: [0])
    items.hasSurrogateKey = true
    items.references = [
      FleetReference(
        columns: [2], parent: "item", parentColumns: [0], parentNames: ["id"], onDelete: .cascade,
        onUpdate: .noAction, isDeferred: false)
    ]
    let time: Int64 = 1_700_000_000_000
    func edit(_ statement: String, on device: Int) -> FleetStep {
      .edit(
        device: device,
        FleetEdit(
          statements: [statement], hasForeignKeys: true, time: time + 1000, salt: UInt64(device)))
    }
    let text = "printf('%.*c', 9000, 'z')"
    var plan = FleetPlan(
      seed: 1, schema: FleetSchema(tables: [items]),
      start: ["INSERT INTO item (id, text) VALUES (1, \(text)), (2, NULL)"], devices: [1, 2],
      usesManagers: true,
      steps: [
        edit("DELETE FROM item WHERE id = 2", on: 2),
        .sync(device: 2, time: time + 2000, salt: 3),
        edit("INSERT INTO item (text, parent) VALUES (\(text), 2)", on: 1),
      ])
    plan.circumstances.memoryBytes = RandomHeldEdits.memoryBytes
    let outcome = try await FleetRun.carryOut(plan)
    #expect(outcome.failure == nil)
    #expect(outcome.size.heldEdits == 1)
  }
}
