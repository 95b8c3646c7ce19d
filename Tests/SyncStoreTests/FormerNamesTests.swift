import SyncModel
import Testing

@testable import SyncStore

/// What bookkeeping knows by the position of a column, or the number of a
/// table, once others have taken their places.
@Suite struct FormerNamesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Two devices that have edited the same cells; the second one has heard of
  /// what the first one did, which loses.
  private func disagreeing(
    _ schema: String, _ edit: (Int) -> String, prepare: (Device) throws -> Void = { _ in }
  ) throws -> (Device, Device) {
    let devices = try scratch.devices(2, schema)
    try prepare(devices[1])
    for (index, device) in devices.enumerated() {
      try device.setClock(offset: Double(-100 + index * 10))
      try device.run(edit(index + 1))
    }
    _ = try devices[1].store.seal()
    return (devices[0], devices[1])
  }

  @Test(arguments: [0, 1, Int.min])
  func aNumberOfATableThatIsNotNegativeIsRefused(number: Int) throws {
    let table = FormerNames.Table(
      name: "t", wireName: "t", identity: SQLText("primaryKey"), columns: [:])
    try FormerNames(tables: [-1: table]).checkNumbers()
    #expect {
      try FormerNames(tables: [number: table]).checkNumbers()
    } throws: {
      "\($0)" == "table is \(number)"
    }
  }

  private static let table = """
    CREATE TABLE t (id TEXT PRIMARY KEY, a, b, c);
    INSERT INTO t VALUES ('x', 'base a', 'base b', 'base c');
    """

  private func dropFirstColumn(_ device: Device) throws {
    try device.run(
      """
      PRAGMA foreign_keys = OFF; BEGIN; CREATE TABLE n (id TEXT PRIMARY KEY, b, c);
      INSERT INTO n SELECT id, b, c FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t; COMMIT;
      """)
  }

  private func edit(_ device: Int) -> String {
    "UPDATE t SET a = '\(device) a', b = '\(device) b', c = '\(device) c'"
  }

  @Test(arguments: [true, false])
  func theJournalKeepsItsColumnsWhenOneBeforeThemGoes(isOpen: Bool) throws {
    let (one, two) = try disagreeing(Self.table, edit) {
      try $0.setPolicy(.ask, table: "t", column: "a")
      try $0.setPolicy(.ask, table: "t", column: "c")
    }
    try two.receive(from: one)
    #expect(try two.store.openConflictCount() == 2)
    let device = try two.changed(isOpen: isOpen) { try dropFirstColumn($0) }
    try device.run("UPDATE t SET id = id")
    let conflicts = try device.store.conflicts()
    func found(_ column: SQLName) throws -> Conflict {
      try #require(conflicts.first { $0.column == column })
    }
    for column in ["a", "b", "c"] as [SQLName] {
      let conflict = try found(column)
      #expect(conflict.local.cells?.map(\.column) == [column])
      #expect(conflict.local.cells?.first?.value == .text(Array("2 \(column)".utf8)))
      #expect(conflict.remote.cells?.first?.value == .text(Array("1 \(column)".utf8)))
      #expect(conflict.key.map(\.column) == ["id"])
    }
    // The user cannot answer a question about a column that does not exist.
    #expect(try found("a").status == .settled && found("c").status == .open)
    #expect {
      try device.store.restoreConflict(found("a").number)
    } throws: {
      ($0 as? StoreError)?.code == .editRefused
    }
    try device.store.restoreConflict(found("b").number)
    try device.store.resolveConflict(found("c").number, by: .remote)
    #expect(try device.rows("SELECT * FROM t") == ["x|1 b|1 c"])
    // A whole store tells the names as well.
    let whole = scratch.path + "/whole.db"
    _ = try device.outgoing()
    _ = try device.store.snapshot(to: whole)
    _ = try device.store.replaceContent(withSnapshotAt: whole)
    #expect(try device.store.conflicts().compactMap(\.column).sorted() == ["a", "b", "c"])
  }

  @Test func whatCellsHeldBeforeIsKnownWhenAColumnBeforeThemGoes() throws {
    let (one, two) = try disagreeing(Self.table, edit) {
      try $0.setPolicy(.resolve("all"), table: "t", column: "b")
      try $0.setPolicy(.resolve("all"), table: "t", column: "c")
    }
    two.store.setResolver("all") { conflict in
      guard case .text(let base) = conflict.base else { return .text(Array("no base".utf8)) }
      return .text(base)
    }
    try dropFirstColumn(two)
    try two.receive(from: one)
    #expect(try two.rows("SELECT * FROM t") == ["x|base b|base c"])
  }

  @Test func sumsThatWaitForACounterFollowItWhenAColumnBeforeItGoes() throws {
    let device = try scratch.devices(1, Self.table)[0]
    let row = RowKey(table: 1, identity: IdentityEncoding.encode([.text(Array("x".utf8))]))
    let stamp = LocalStamp(time: 1 << 40, client: 1)
    let sum = Counter.Sum(.integer(7), at: HybridTime(rawValue: 1 << 41))
    for column in [1, 3] {
      try device.store.write { try $0.early.store(sum, of: 1, since: stamp, column, row) }
    }
    try dropFirstColumn(device)
    let found = try device.store.write { session in
      try (1...3).map { try session.early.sum(of: 1, since: stamp, $0, row)?.value }
    }
    #expect(found == [nil, .integer(7), nil])
  }

  @Test(arguments: [true, false])
  func theJournalKeepsATableThatGoesWhileAnotherComes(isOpen: Bool) throws {
    let (one, two) = try disagreeing(
      "CREATE TABLE k (id TEXT PRIMARY KEY, v);"
        + "CREATE TABLE z (id TEXT PRIMARY KEY, v); INSERT INTO z VALUES ('x', 'base')",
      { "UPDATE z SET v = '\($0)'" }, prepare: { try $0.setPolicy(.ask, table: "z") })
    try two.receive(from: one)
    let number = try #require(try two.store.conflicts(onlyOpen: true).first).number
    let device = try two.changed(isOpen: isOpen) { try $0.run("DROP TABLE z") }
    _ = try device.store.seal()
    try device.run("CREATE TABLE y (id TEXT PRIMARY KEY, w); INSERT INTO y VALUES ('x', 'mine')")
    _ = try device.store.seal()
    let conflict = try device.store.conflict(number)
    #expect(conflict.table == "z" && conflict.column == "v" && conflict.status == .settled)
    #expect {
      try device.store.restoreConflict(number)
    } throws: {
      ($0 as? StoreError)?.code == .editRefused
    }
    #expect(try device.rows("SELECT * FROM y") == ["x|mine"])
  }
}
