import Testing

@testable import SyncStore

/// A log that is read in several batches says what it would say in one.
@Suite struct PortionTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE p (id INTEGER PRIMARY KEY, a TEXT, b TEXT);
    CREATE TABLE c (id TEXT PRIMARY KEY, p INTEGER REFERENCES p ON DELETE RESTRICT);
    CREATE TABLE stock (id TEXT PRIMARY KEY, name TEXT, count INTEGER);
    INSERT INTO p VALUES (1, 'old', 'b'), (2, 'old', 'b'), (3, 'old', 'b');
    """

  private func devices(counting: Bool = false, _ rows: String = "") throws -> [Device] {
    var options = StoreOptions()
    options.rowsPerChangeSet = 2
    options.bytesPerChangeSet = 1
    var configuration = StoreConfiguration()
    if counting { configuration.columnMergeTypes = ["stock": ["count": .counter]] }
    return try scratch.devices(
      2, Self.schema + rows, configuration: configuration, options: options)
  }

  /// An insertion says what the table holds, with all that was added in the same time.
  @Test func additionsToRowsOfEarlierBatchesCountOnce() throws {
    let devices = try devices(counting: true)
    try devices[0].run(
      """
      INSERT INTO stock VALUES ('a', 'x', 5), ('b', 'x', 1);
      UPDATE stock SET count = count + 2, name = 'y' WHERE id = 'a'
      """)
    #expect(try devices[0].outgoing().count > 1)
    try converge(devices, "SELECT count FROM stock ORDER BY id", ["7", "1"])
    try devices[1].run("UPDATE stock SET count = count + 1")
    try devices[0].run("UPDATE stock SET count = count - 3")
    try converge(devices, "SELECT count FROM stock ORDER BY id", ["5", "-1"])
  }

  /// A batch in which a counter's edits add up to nothing says nothing of it. Nor does a later one.
  @Test(arguments: ["0", "count + 1"], [0, 5])
  func additionsThatEndWhereTheyBeganCountOnce(last: String, before: Int) throws {
    let devices = try devices(
      counting: true, "INSERT INTO stock VALUES ('a', 'x', 0), ('b', 'x', 0), ('c', 'x', 0);")
    if before > 0 {
      try devices[0].run("UPDATE stock SET count = count + \(before)")
      try converge(devices)
      try devices[0].run("UPDATE stock SET count = count - \(before)")
      try converge(devices)
    }
    let head = try devices[0].store.head()?.number ?? 0
    try devices[0].run(
      """
      UPDATE stock SET count = count + 1, name = 'y';
      UPDATE stock SET count = \(last) WHERE id <> 'b'; UPDATE stock SET count = 0 WHERE id = 'c'
      """)
    #expect(try devices[0].outgoing(after: head).count > 1)
    try converge(
      devices, "SELECT count FROM stock ORDER BY id", [last == "0" ? "0" : "2", "1", "0"])
    try devices[1].run("UPDATE stock SET count = count + 3")
    try devices[0].run("UPDATE stock SET count = count + 1")
    try converge(
      devices, "SELECT count FROM stock ORDER BY id", [last == "0" ? "4" : "6", "5", "4"])
  }

  /// An update that sets a counter says what the table holds, with all that was added later.
  @Test(arguments: ["count + 1", "count - 7", "NULL", "12"], [true, false])
  func additionsToCountersThatAnEarlierBatchSetsCountOnce(value: String, isBefore: Bool) throws {
    let rows = "INSERT INTO stock VALUES ('a', 'x', NULL), ('b', 'x', NULL), ('c', 'x', 1);"
    let devices = try devices(counting: true, isBefore ? rows : "")
    if !isBefore { try devices[0].run(rows) }
    try converge(devices)
    let head = try devices[0].store.head()?.number ?? 0
    try devices[0].run(
      """
      UPDATE stock SET count = 5, name = 'y'; UPDATE stock SET count = \(value) WHERE id = 'a';
      UPDATE stock SET count = count + 1 WHERE id = 'c'
      """)
    let shown = try devices[0].rows("SELECT count FROM stock ORDER BY id")
    #expect(try devices[0].outgoing(after: head).count > 1)
    try converge(devices, "SELECT count FROM stock ORDER BY id", shown)
    try devices[0].run("UPDATE stock SET count = count + 2")
    try devices[1].run("UPDATE stock SET count = count + 3")
    let sums = shown.map { Int($0).map { "\($0 + 5)" } ?? "NULL" }
    try converge(devices, "SELECT count FROM stock ORDER BY id", sums)
  }

  @Test(arguments: ["DELETE FROM p WHERE id = 1", "UPDATE p SET id = 99 WHERE id = 1"])
  func aDeletionSaysWhatEarlierBatchesToldOfTheRow(end: String) throws {
    let devices = try devices()
    try devices[0].run("UPDATE p SET a = 'new'; \(end)")
    #expect(try devices[0].outgoing().count > 1)
    try converge(devices)
    let first = try devices[0].outgoing().map(\.changeSet).flatMap(\.tables)
    #expect(first.filter { $0.letters.contains("d") }.map { $0.columnNames(0) } == [["a"]])
  }

  @Test func aRowThatComesBackHasWhatItsAuthorLastSaw() throws {
    let devices = try devices()
    try devices[0].run("UPDATE p SET a = 'new'; DELETE FROM p WHERE id = 1")
    try devices[1].run("INSERT INTO c VALUES ('x', 1)")
    try converge(devices, "SELECT a, b FROM p", ["new|b", "new|b", "new|b"])
  }

  @Test func aRowThatCameAndWentIsPassedOver() throws {
    let devices = try devices()
    try devices[0].run(
      """
      INSERT INTO p VALUES (7, 'n', 'n'); UPDATE p SET a = 'new' WHERE id < 4;
      UPDATE p SET b = 'm' WHERE id = 7; DELETE FROM p WHERE id = 7
      """)
    let letters = try devices[0].changes().flatMap(\.letters)
    #expect(!letters.contains("d"))
    try converge(devices)
  }

  /// The foreign key's change of the row comes before its insertion under the new key.
  @Test(arguments: [2, 100])
  func aRowWithTwoVersionsWhoseKeyIsChangedIsInserted(rows: Int) throws {
    var options = StoreOptions()
    options.rowsPerChangeSet = rows
    options.bytesPerChangeSet = 1
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["note": .keepBoth]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT,
        parent INTEGER REFERENCES note ON UPDATE CASCADE);
      """, configuration: configuration, options: options)
    try devices[0].run("INSERT INTO note VALUES (4, 'parent', 4), (3, 'child', 4)")
    try converge(devices)
    try devices[1].run(
      "UPDATE note SET text = 'edited' WHERE id = 4; UPDATE note SET id = 2 WHERE id = 4")
    try converge(
      devices,
      "SELECT note.text, parent.text FROM note JOIN note AS parent ON parent.id = note.parent "
        + "ORDER BY 1", ["child|edited", "edited|edited"])
  }
}
