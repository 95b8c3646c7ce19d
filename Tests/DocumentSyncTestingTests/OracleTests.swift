import SyncModel
import Testing

@testable import DocumentSyncTesting

/// The oracle against results worked out by hand from Documentation/Merging.md.
@Suite struct OracleTests {
  private static let alice = ClientIdentifier(bits: Bits128(high: 0, low: 1))
  private static let bob = ClientIdentifier(bits: Bits128(high: 0, low: 2))

  /// A folder with notes; the action is that of the notes' reference.
  private func schema(_ action: FleetReference.Action) -> FleetSchema {
    let folders = FleetTable(
      name: "folder", columns: [FleetColumn(name: "k", type: .text)], key: [0])
    var notes = FleetTable(
      name: "note",
      columns: [
        FleetColumn(name: "k", type: .text), FleetColumn(name: "title", type: .text),
        FleetColumn(name: "folder", type: .text, defaultValue: "'inbox'"),
      ], key: [0])
    notes.references = [
      FleetReference(
        columns: [2], parent: "folder", parentColumns: [0], parentNames: ["k"], onDelete: action,
        onUpdate: .noAction, isDeferred: false)
    ]
    notes.uniques = [FleetUnique(name: "title", terms: [.column(1, .binary)])]
    return FleetSchema(tables: [folders, notes])
  }

  private func key(_ table: SQLName, _ name: String) -> OracleKey {
    OracleKey(table: table, identity: IdentityEncoding.encode([.text(name)]))
  }

  /// One change to one row.
  private func set(
    _ client: ClientIdentifier, _ number: UInt64, time: UInt64, _ table: SQLName,
    _ action: RowAction, _ name: String, _ cells: [(SQLName, Value)] = [], movedTo: String? = nil
  ) -> SyncChangeSet {
    var changes = TableChanges(
      table: table, identity: .primaryKey, keyColumns: ["k"], columns: cells.map(\.0))
    changes.keys[0].append(.text(name))
    changes.actions = [action.rawValue]
    changes.times = [HybridTime(rawValue: time)]
    changes.shapes = [Array(cells.indices)]
    changes.rowShapes = [0]
    for (index, cell) in cells.enumerated() { changes.cells[index].append(cell.1) }
    if let movedTo {
      changes.moves = [
        RowMove(row: 0, destination: IdentityEncoding.encode([.text(movedTo)]))
      ]
    }
    return SyncChangeSet(
      header: SyncChangeSet.Header(
        root: RootIdentifier(bits: Bits128(high: 0, low: 1)),
        document: DocumentName(bits: Bits128(high: 0, low: 1)),
        generation: IntegrityKey(bits: Bits128(high: 0, low: 1)), client: client, number: number,
        previous: nil),
      dependencies: VersionVector(), schema: ContentHash(of: []), tables: [changes])
  }

  private func note(
    _ client: ClientIdentifier, _ number: UInt64, time: UInt64, _ name: String, title: Value,
    folder: Value
  ) -> SyncChangeSet {
    set(client, number, time: time, "note", .insert, name, [("title", title), ("folder", folder)])
  }

  /// What is shown, merged in both orders.
  private func shown(
    _ schema: FleetSchema, _ sets: [SyncChangeSet]
  ) throws -> Materialization {
    let start = [
      key("folder", "work"): [SQLName: Value](), key("folder", "inbox"): [SQLName: Value](),
    ]
    let scratch = try OracleScratch(schema: schema)
    let results = try [sets, sets.reversed()].map { sets in
      var state = LogicalState(schema: schema, start: start, origins: [:])
      for set in sets { state.merge(set) }
      return try Materialization(of: state, schema: schema, scratch: scratch)
    }
    #expect(results[0].visible == results[1].visible)
    return results[0]
  }

  private func deletionAgainstChild(_ action: FleetReference.Action) throws -> Materialization {
    try shown(
      schema(action),
      [
        set(Self.alice, 1, time: 10, "folder", .delete, "work"),
        note(Self.bob, 1, time: 20, "n", title: .text("t"), folder: .text("work")),
      ])
  }

  @Test(arguments: [FleetReference.Action.noAction, .restrict])
  func parentComesBackWhereItsDeletionWouldBeRefused(action: FleetReference.Action) throws {
    let result = try deletionAgainstChild(action)
    #expect(result.visible[key("folder", "work")] != nil)
    #expect(result.visible[key("note", "n")]?["folder"] == .text("work"))
  }

  @Test func childGoesWithItsParentByCascade() throws {
    let result = try deletionAgainstChild(.cascade)
    #expect(result.visible[key("folder", "work")] == nil)
    #expect(result.hidden[key("note", "n")] == .parentDeleted)
  }

  @Test func childIsShownWithoutItsParent() throws {
    #expect(try deletionAgainstChild(.setNull).visible[key("note", "n")]?["folder"] == .null)
    #expect(
      try deletionAgainstChild(.setDefault).visible[key("note", "n")]?["folder"] == .text("inbox"))
  }

  @Test func referenceFollowsAMovedKey() throws {
    let result = try shown(
      schema(.restrict),
      [
        set(Self.alice, 1, time: 10, "folder", .delete, "work", movedTo: "job"),
        set(Self.alice, 2, time: 11, "folder", .insert, "job"),
        note(Self.bob, 1, time: 20, "n", title: .text("t"), folder: .text("work")),
      ])
    #expect(result.visible[key("note", "n")]?["folder"] == .text("job"))
    #expect(result.visible[key("folder", "work")] == nil)
  }

  @Test func laterClaimOfAUniqueValueStands() throws {
    let result = try shown(
      schema(.restrict),
      [
        note(Self.alice, 1, time: 30, "a", title: .text("same"), folder: .null),
        note(Self.bob, 1, time: 20, "b", title: .text("same"), folder: .null),
      ])
    #expect(result.visible[key("note", "a")] != nil)
    #expect(result.hidden[key("note", "b")] == .uniqueValueTaken)
  }

  @Test func equalTimesAreDecidedByTheClient() throws {
    let result = try shown(
      schema(.restrict),
      [
        note(Self.alice, 1, time: 20, "a", title: .text("alice"), folder: .null),
        note(Self.bob, 1, time: 20, "a", title: .text("bob"), folder: .null),
      ])
    #expect(result.visible[key("note", "a")]?["title"] == .text("bob"))
  }

  /// The row was erased, and inserted again: in whatever order that and an addition arrive, it is
  /// an addition to the value of the insertion.
  @Test func additionsCountThatComeBeforeTheInsertion() throws {
    var tables = FleetTable(
      name: "visits",
      columns: [FleetColumn(name: "k", type: .text), FleetColumn(name: "n", type: .integer)],
      key: [0])
    tables.columns[1].isCounter = true
    let insertion = Stamp(time: HybridTime(rawValue: 20), client: Self.alice)
    let added = CounterValue.added(sum: .integer(1), before: nil, since: insertion).encoded
    let sets = [
      set(Self.bob, 1, time: 10, "visits", .erase, "a"),
      set(Self.bob, 2, time: 30, "visits", .update, "a", [("n", added)]),
      set(Self.alice, 1, time: 20, "visits", .insert, "a", [("n", .integer(5))]),
    ]
    for order in [[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0]] {
      var state = LogicalState(schema: FleetSchema(tables: [tables]), start: [:], origins: [:])
      for index in order { state.merge(sets[index]) }
      #expect(state.rows[key("visits", "a")]?.cells["n"]?.shown == .integer(6), "\(order)")
    }
  }

  /// The author of the newer version does not have the folder: the row keeps it.
  @Test func aVersionLeavesAColumnAloneThatItsAuthorDoesNotHave() throws {
    var whole = schema(.restrict)
    whole.tables[1].mergeType = .wholeRow
    let result = try shown(
      whole,
      [
        note(Self.alice, 1, time: 20, "a", title: .text("t"), folder: .text("work")),
        set(Self.bob, 1, time: 30, "note", .update, "a", [("title", .text("u"))]),
      ])
    #expect(result.visible[key("note", "a")]?["title"] == .text("u"))
    #expect(result.visible[key("note", "a")]?["folder"] == .text("work"))
  }

  @Test func deletionBeatsAnEditThatIsNewer() throws {
    let result = try shown(
      schema(.restrict),
      [
        note(Self.alice, 1, time: 20, "a", title: .text("t"), folder: .null),
        set(Self.alice, 2, time: 21, "note", .delete, "a"),
        set(Self.bob, 1, time: 90, "note", .update, "a", [("title", .text("edited"))]),
      ])
    #expect(result.visible[key("note", "a")] == nil)
    #expect(result.hidden[key("note", "a")] == nil)
  }
}
