import GRDB
import SyncModel
import Testing

@testable import SyncStore

/// Names and values that are equal for Unicode and differ in their bytes, or
/// differ in the case of letters that SQLite does not fold.
@Suite struct CanonicalNameTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let composed = "caf\u{E9}"
  private static let decomposed = "cafe\u{301}"

  @Test(arguments: [(composed, decomposed), ("\u{C4}", "\u{E4}"), ("\u{212B}", "\u{C5}")])
  func tablesOfEqualNamesAreTwo(one: String, two: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE "\(one)" (id INTEGER PRIMARY KEY, v TEXT UNIQUE);
      CREATE TABLE "\(two)" (id INTEGER PRIMARY KEY, v, up INTEGER REFERENCES "\(one)");
      INSERT INTO "\(one)" VALUES (1, 'a'); INSERT INTO "\(two)" VALUES (1, 'b', 1);
      """)
    try devices[0].run(#"UPDATE "\#(one)" SET v = 'A'; INSERT INTO "\#(one)" VALUES (2, 'c')"#)
    try devices[1].run(
      #"UPDATE "\#(two)" SET v = 'B'; INSERT INTO "\#(two)" VALUES (2, 'd', 1)"#)
    try converge(
      devices, #"SELECT * FROM "\#(one)" UNION ALL SELECT id, v || up FROM "\#(two)""#,
      ["1|A", "2|c", "1|B1", "2|d1"])
    try devices[0].run(#"DELETE FROM "\#(two)" WHERE id = 2; DELETE FROM "\#(one)" WHERE id = 2"#)
    try converge(
      devices, #"SELECT v FROM "\#(one)" UNION ALL SELECT v FROM "\#(two)""#, ["A", "B"])
    for device in devices { #expect(try sound(device)) }
  }

  @Test func columnsOfEqualNamesKeepTheirValues() throws {
    let (one, two) = (Self.composed, Self.decomposed)
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, "\(one)", "\(two)", UNIQUE ("\(two)"));
      INSERT INTO t VALUES (1, 2, 3), (2, 4, 5);
      """)
    try devices[0].run(#"UPDATE t SET "\#(two)" = 8 WHERE id = 1"#)
    try devices[1].run(
      #"UPDATE t SET "\#(one)" = 7 WHERE id = 2; INSERT INTO t VALUES (3, 'x', 'y')"#)
    try converge(devices, "SELECT * FROM t ORDER BY id", ["1|2|8", "2|7|5", "3|x|y"])
    // The schema is read again, and a column of a third spelling comes.
    for device in devices { try device.run(#"ALTER TABLE t ADD COLUMN "cafe\#u{300}""#) }
    try devices[1].run(#"UPDATE t SET "cafe\#u{300}" = 'z', "\#(two)" = 9 WHERE id = 1"#)
    try converge(devices, "SELECT * FROM t WHERE id = 1", ["1|2|9|z"])
    for device in devices { #expect(try sound(device)) }
  }

  @Test(arguments: [false, true])
  func keyColumnsOfEqualNamesIdentifyRows(isDeclared: Bool) throws {
    let (one, two) = (Self.composed, Self.decomposed)
    var configuration = StoreConfiguration()
    if isDeclared {
      configuration.identities["t"] = .columns([SQLName(one), SQLName(two)])
    }
    let key =
      isDeclared
      ? #""\#(one)" TEXT NOT NULL, "\#(two)" TEXT NOT NULL, v, id INTEGER PRIMARY KEY, UNIQUE ("\#(one)", "\#(two)")"#
      : #""\#(one)" TEXT, "\#(two)" TEXT, v, PRIMARY KEY ("\#(one)", "\#(two)")"#
    let devices = try scratch.devices(
      2, "CREATE TABLE t (\(key)); INSERT INTO t (\"\(one)\", \"\(two)\", v) VALUES ('a', 'b', 1);",
      configuration: configuration)
    try devices[0].run(#"INSERT INTO t ("\#(one)", "\#(two)", v) VALUES ('b', 'a', 2)"#)
    try devices[1].run("UPDATE t SET v = 3")
    try converge(
      devices, #"SELECT "\#(one)", "\#(two)", v FROM t ORDER BY 1"#, ["a|b|3", "b|a|2"])
    try devices[1].run(#"UPDATE t SET "\#(two)" = 'z' WHERE v = 3"#)
    try converge(
      devices, #"SELECT "\#(one)", "\#(two)", v FROM t ORDER BY 1"#, ["a|z|3", "b|a|2"])
    for device in devices { #expect(try sound(device)) }
  }

  @Test func keysOfEqualTextAreTwoRows() throws {
    let (one, two) = (Self.composed, Self.decomposed)
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
      CREATE TABLE u (id INTEGER PRIMARY KEY, w TEXT UNIQUE, k TEXT REFERENCES t);
      INSERT INTO t VALUES ('\(one)', 1);
      """)
    try devices[0].run("INSERT INTO t VALUES ('\(two)', 2); UPDATE t SET v = 3 WHERE k = '\(one)'")
    try devices[1].run("INSERT INTO u VALUES (1, '\(one)', '\(one)'), (2, '\(two)', NULL)")
    try exchange(devices)
    try devices[1].run("UPDATE u SET k = '\(two)' WHERE id = 2")
    try converge(
      devices, "SELECT hex(k), v FROM t ORDER BY v", ["63616665CC81|2", "636166C3A9|3"])
    // A change of spelling alone is a change.
    try devices[0].run("UPDATE t SET v = '\(one)' WHERE v = 2")
    try converge(devices)
    try devices[1].run("UPDATE t SET v = '\(two)' WHERE v = '\(one)'")
    try converge(
      devices, "SELECT hex(v) FROM t JOIN u USING (k) WHERE u.id = 2", ["63616665CC81"])
  }

  @Test func choicesAreForTheNameThatTheyName() throws {
    let (one, two) = (Self.composed, Self.decomposed)
    var configuration = StoreConfiguration()
    configuration.excludedColumns = [SQLName(two): ["\(one)"]]
    configuration.excludedTables = ["\(two)2"]
    configuration.tableMergeTypes = [SQLName(one): .editWins, SQLName(two): .wholeRow]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE "\(one)" (k TEXT PRIMARY KEY, "\(one)", "\(two)");
      CREATE TABLE "\(two)" (k TEXT PRIMARY KEY, "\(one)", "\(two)");
      CREATE TABLE "\(one)2" (k TEXT PRIMARY KEY); CREATE TABLE "\(two)2" (k TEXT PRIMARY KEY);
      """, configuration: configuration)
    try devices[0].run(
      """
      INSERT INTO "\(one)" VALUES ('a', 1, 2); INSERT INTO "\(two)" VALUES ('a', 1, 2);
      INSERT INTO "\(one)2" VALUES ('a'); INSERT INTO "\(two)2" VALUES ('a')
      """)
    try exchange(devices)
    #expect(
      try devices[1].rows(
        #"SELECT * FROM "\#(one)" UNION ALL SELECT * FROM "\#(two)" UNION ALL SELECT k, 1, 1 FROM "\#(one)2""#
      )
        == ["a|1|2", "a|NULL|2", "a|1|1"])
    #expect(try devices[1].rows(#"SELECT * FROM "\#(two)2""#) == [])
    // They are kept with the store and read from it again.
    let again = try devices[1].changed(isOpen: false) { _ in }
    #expect(again.store.configuration == configuration)
    let schema = try again.store.read { $0.schema }
    #expect(schema.table(named: SQLName(one))?.mergeType == .editWins)
    #expect(schema.table(named: SQLName(two))?.mergeType == .wholeRow)
  }

  @Test func aNameMayHaveAMarkAfterAQuotationMark() throws {
    let name = "a\"\u{301}b"
    let sql = SQLName(name).quoted
    let devices = try scratch.devices(
      2, "CREATE TABLE \(sql) (\(sql) TEXT PRIMARY KEY, v); INSERT INTO \(sql) VALUES ('a', 1)")
    try devices[0].run("UPDATE \(sql) SET v = 2; INSERT INTO \(sql) VALUES ('b', '''\u{301}')")
    try converge(devices, "SELECT v FROM \(sql)", ["2", "'\u{301}"])
  }

  @Test func namesOfTablesThatAreNotHereStayApart() throws {
    let (one, two) = (Self.composed, Self.decomposed)
    let devices = try scratch.devices(2, "CREATE TABLE t (k TEXT PRIMARY KEY)")
    let make =
      #"CREATE TABLE "\#(one)" (k TEXT PRIMARY KEY, "\#(one)", "\#(two)"); "#
      + #"CREATE TABLE "\#(two)" (k TEXT PRIMARY KEY, v)"#
    try devices[0].run(make)
    try devices[0].run(
      #"INSERT INTO "\#(one)" VALUES ('a', 1, 2); INSERT INTO "\#(two)" VALUES ('b', 3)"#)
    try exchange(devices)
    #expect(try devices[1].store.status().unknownNames.count == 2)
    try devices[1].run(make)
    try converge(
      devices, #"SELECT * FROM "\#(one)" UNION ALL SELECT *, 0 FROM "\#(two)""#,
      ["a|1|2", "b|3|0"])
  }

  @Test func onlyTheColumnThatIsTooLargeStays() throws {
    let (one, two) = (Self.composed, Self.decomposed)
    var options = StoreOptions.patient
    options.limits.memoryBytes = 64 << 10
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, "\(one)", "\(two)"); INSERT INTO t VALUES ('a', 1, 2)
      """, options: options)
    try devices[0].run(#"UPDATE t SET "\#(one)" = 5, "\#(two)" = randomblob(40000)"#)
    try exchange(devices)
    let held = try devices[0].store.status().heldEdits
    #expect(held.map(\.columns) == [[SQLName(two)]])
    let columns = try devices[0].store.heldChangeSets().flatMap { set in
      set.tables.flatMap { table in table.shapes.flatMap { $0.map { table.columns[$0] } } }
    }
    #expect(columns == [SQLName(two)])
    #expect(try devices[1].rows("SELECT * FROM t") == ["a|5|2"])
    try devices[1].run("DELETE FROM t")
    try converge(devices, "SELECT * FROM t", [])
    for device in devices { #expect(try sound(device)) }
  }

  @Test(arguments: [["n', 'x", "x', 'm"], ["x', 'm", "n', 'x"]])
  func aRowWaitsForAllTheRowsThatItRefersTo(parents: [String]) throws {
    let (one, two) = (Self.composed, Self.decomposed)
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (k TEXT PRIMARY KEY, "\(one)" TEXT UNIQUE, "\(two)" TEXT UNIQUE);
      CREATE TABLE c (k TEXT PRIMARY KEY, a TEXT REFERENCES p ("\(one)"), b TEXT REFERENCES p ("\(two)"));
      """)
    // Rows of `p` with this value in one of the columns are two rows.
    try devices[0].run("PRAGMA foreign_keys = OFF; INSERT INTO c VALUES ('c', 'x', 'x')")
    try exchange(devices)
    for device in devices { #expect(try device.rows("SELECT * FROM c") == []) }
    for (number, values) in parents.enumerated() {
      try devices[1].run("INSERT INTO p VALUES ('\(number)', '\(values)')")
      try exchange(devices)
    }
    try converge(devices, "SELECT * FROM c", ["c|x|x"])
    for device in devices { #expect(try sound(device)) }
  }

  private func sound(_ device: Device) throws -> Bool {
    let report = try LocalStore.verify(at: device.path)
    return report.report.findings.isEmpty
  }
}
