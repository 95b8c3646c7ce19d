import SyncModel
import Testing

@testable import SyncStore

/// Counters of a client of which two states have gone on.
@Suite struct CounterBranchTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let total = "SELECT stock, price FROM article"

  private func devices(_ count: Int) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.columnMergeTypes = ["article": ["stock": .counter, "price": .counter]]
    return try scratch.devices(
      count,
      """
      CREATE TABLE article (name TEXT PRIMARY KEY, stock INTEGER, price REAL);
      INSERT INTO article VALUES ('a', 1000, 0.0);
      """, configuration: configuration)
  }

  private func add(_ amount: Int, _ device: Device) throws {
    try device.run("UPDATE article SET stock = stock + \(amount)")
    _ = try device.store.seal()
  }

  /// Another state of a device, as it is now.
  private func copy(_ device: Device) throws -> Device {
    let path = scratch.path + "/copy.db"
    try device.run("VACUUM INTO '\(path)'")
    return try Device(store: try LocalStore.open(at: path), path: path)
  }

  @Test(arguments: [0, 400])
  func whatAnOlderStateAddsCountsBesideWhatTheClientHasAddedSince(unsealed: Int) throws {
    let devices = try devices(3)
    try add(1, devices[0])
    try exchange(devices)
    let older = try copy(devices[0])
    try add(10, devices[0])
    try add(20, devices[0])
    try exchange(devices)
    // More than once. What is not sealed is counted from what is shown, and so makes up for a
    // wrong sum.
    try add(100, older)
    try add(200, older)
    if unsealed > 0 { try older.run("UPDATE article SET stock = stock + \(unsealed)") }
    try older.store.beginIncarnation(.forked) { $0.number > 1 ? .unknown : .common }
    try converge(devices + [older], Self.total, ["\(1_331 + unsealed)|0.0"])
    for device in devices + [older] { try add(1, device) }
    try converge(devices + [older], Self.total, ["\(1_335 + unsealed)|0.0"])
    #expect(try older.store.status().parked == [])
    #expect(try LocalStore.verify(at: older.path).report.findings == [])
  }

  /// Both have the row in their logs when they part.
  @Test func aRowThatACopyDeletesBeforeEitherHasSealedItStaysDeleted() throws {
    let devices = try devices(2)
    try devices[0].run("INSERT INTO article VALUES ('b', 1, 1.0), ('c', 1, 1.0)")
    let copy = try copy(devices[0])
    try copy.run("DELETE FROM article WHERE name = 'b'")
    try copy.store.beginIncarnation(.copied)
    try converge(devices + [copy], "SELECT name FROM article ORDER BY 1", ["a", "c"])
    #expect(try LocalStore.verify(at: copy.path).report.findings == [])
    // What comes and goes later is passed over again.
    try copy.run("INSERT INTO article VALUES ('d', 1, 1.0); DELETE FROM article WHERE name = 'd'")
    #expect(try copy.store.seal().changeSets.isEmpty)
    // Also where nothing was in the log when it parted.
    try copy.store.beginIncarnation(.copied)
    try copy.run("INSERT INTO article VALUES ('e', 1, 1.0); DELETE FROM article WHERE name = 'e'")
    #expect(try copy.store.seal().changeSets.isEmpty)
  }

  /// Makes a copy a client of its own, whose identifier is lower or greater than the original's.
  private func begin(_ copy: Device, isLower: Bool, than original: Device) throws {
    repeat {
      try copy.store.beginIncarnation(.copied)
    } while (copy.store.binding.client < original.store.binding.client) != isLower
  }

  /// The copy has seen the insertion: its deletion is later, whatever its clock says.
  @Test(arguments: [true, false], [true, false])
  func aRowThatACopyDeletesStaysDeletedIfTheClockWentBack(
    isLower: Bool, wasKnown: Bool
  ) throws {
    let devices = try devices(2)
    if wasKnown {
      try devices[0].setClock(offset: 7200)
      try devices[0].run("INSERT INTO article VALUES ('b', 1, 1.0)")
      try exchange(devices)
      try devices[0].run("DELETE FROM article WHERE name = 'b'")
      try exchange(devices)
    }
    try devices[0].setClock(offset: 3600)
    try devices[0].run("INSERT INTO article VALUES ('b', 2, 2.0), ('c', 1, 1.0)")
    let copy = try copy(devices[0])
    try copy.setClock(offset: -3600)
    try copy.run("DELETE FROM article WHERE name = 'b'")
    try begin(copy, isLower: isLower, than: devices[0])
    try converge(devices + [copy], "SELECT name FROM article ORDER BY 1", ["a", "c"])
    #expect(try LocalStore.verify(at: copy.path).report.findings == [])
  }

  private func notes(_ type: TableMergeType? = nil) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes["note"] = type
    return try scratch.devices(
      2,
      """
      CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT);
      INSERT INTO note VALUES ('a', 'x'), ('b', 'x');
      """, configuration: configuration)
  }

  @Test(arguments: [true, false])
  func anEditOfACopyIsLaterThanThoseInTheLogIfTheClockWentBack(isLower: Bool) throws {
    let devices = try notes()
    try devices[0].setClock(offset: 3600)
    try devices[0].run("UPDATE note SET body = 'y'")
    let copy = try copy(devices[0])
    try copy.setClock(offset: -3600)
    try copy.run("UPDATE note SET body = 'z' WHERE id = 'a'")
    try begin(copy, isLower: isLower, than: devices[0])
    try converge(devices + [copy], "SELECT body FROM note ORDER BY id", ["z", "y"])
  }

  /// A deletion is just above what its author knew, and so above the edits in the log as well.
  @Test(arguments: [true, false])
  func aRowThatACopyDeletesStaysDeletedWhereEditsWin(isLower: Bool) throws {
    let devices = try notes(.editWins)
    try devices[0].run("INSERT INTO note VALUES ('c', 'x')")
    try devices[0].run("UPDATE note SET body = 'y' WHERE id = 'b'")
    let copy = try copy(devices[0])
    try copy.run("DELETE FROM note WHERE id <> 'a'")
    try begin(copy, isLower: isLower, than: devices[0])
    try converge(devices + [copy], "SELECT id FROM note", ["a"])
    #expect(try LocalStore.verify(at: copy.path).report.findings == [])
  }

  @Test func whatASettingHasMadeVoidStaysVoid() throws {
    let devices = try devices(2)
    try add(1, devices[0])
    try exchange(devices)
    let older = try copy(devices[0])
    try add(100, older)
    try older.run("UPDATE article SET stock = NULL")
    _ = try older.store.seal()
    try older.run("UPDATE article SET stock = 7")
    try add(1, older)
    try older.store.beginIncarnation(.forked) { $0.number > 1 ? .unknown : .common }
    try converge(devices + [older], Self.total, ["8|0.0"])
  }

  @Test func realsAddUpToTheSameNumberEverywhere() throws {
    let devices = try devices(2)
    func add(_ amount: Double, _ device: Device) throws {
      try device.run("UPDATE article SET price = price + \(amount)")
      _ = try device.store.seal()
    }
    try add(0.1, devices[0])
    try exchange(devices)
    let older = try copy(devices[0])
    for amount in [0.2, 1e15, 0.3, -1e15, 0.7] { try add(amount, older) }
    try older.store.beginIncarnation(.forked) { $0.number > 1 ? .unknown : .common }
    try converge(devices + [older])
    #expect(try LocalStore.verify(at: older.path).report.findings == [])
  }

  @Test(arguments: [0, 1])
  func statesThatHaveBothPublishedEndWithOneNumber(laterOne: Int) throws {
    let devices = try devices(4)
    try add(1, devices[0])
    try exchange(devices)
    let other = try copy(devices[0])
    try [devices[0], other][laterOne].setClock(offset: 3_600)
    try add(10, devices[0])
    try add(100, other)
    // One has the number from the one state, one from the other.
    try devices[1].receive(from: devices[0])
    try devices[2].receive(from: other)
    try devices[2].store.takeBack(
      devices[0].store.binding.client,
      to: VersionVector.Entry(
        number: 1, hash: try #require(try devices[0].store.sealedChangeSets().first?.hash)))
    try other.store.beginIncarnation(.forked) { $0.number > 1 ? .known : .common }
    try converge(devices + [other], Self.total, [laterOne == 0 ? "1011|0.0" : "1101|0.0"])
    // From then on everything counts.
    for device in devices + [other] { try add(1, device) }
    try converge(devices + [other], Self.total, [laterOne == 0 ? "1016|0.0" : "1106|0.0"])
  }

  @Test func aSumIsLaterThanTheOneBeforeWhateverTheClockSays() throws {
    let devices = try devices(2)
    try devices[0].setClock(offset: 3_600)
    try add(1, devices[0])
    try devices[0].setClock(offset: 0)
    try add(2, devices[0])
    try devices[1].receive(from: devices[0])
    #expect(try devices[1].rows(Self.total) == ["1003|0.0"])
    try converge(devices, Self.total, ["1003|0.0"])
  }
}
