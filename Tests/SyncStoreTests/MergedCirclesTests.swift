import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Rows of a database that refer to one another come into a document.
@Suite struct MergedCirclesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let addresses = """
    CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL,
      address INTEGER REFERENCES address (id));
    CREATE TABLE address (id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES person (id),
      label TEXT NOT NULL, street TEXT, UNIQUE (person, label));
    """

  private static let ann = """
    INSERT INTO person VALUES (1, 'Ann', 1); INSERT INTO address VALUES (1, 1, 'home', 'A');
    """

  private static let ofPersons =
    "SELECT name, label, street, p.address = a.id FROM person p JOIN address a ON person = p.id "
    + "ORDER BY name, label"

  @Test(arguments: [false, true])
  func rowsInACircleAreNotThoseOfAnotherRow(isInPlace: Bool) throws {
    let (devices, merged) = try scratch.merge(
      Self.addresses,
      document: Self.ann,
      local: Self.ann.replacing("Ann", with: "Bob").replacing("'A'", with: "'B'"),
      isInPlace: isInPlace)
    #expect(merged.insertedRows == 2 && merged.refusedRows == 0 && merged.differingRows == 0)
    try converge(devices, Self.ofPersons, ["Ann|home|A|1", "Bob|home|B|1"])
    try expectSound(devices)
  }

  /// Once a row is found by its unique values, the rows that refer to it are found by theirs.
  @Test(arguments: MergedRows.Preference.allCases, ["name", "lower(name)"])
  func rowsInACircleAreFoundByUniqueValues(prefer: MergedRows.Preference, index: String) throws {
    let (devices, merged) = try scratch.merge(
      Self.addresses + "CREATE UNIQUE INDEX named ON person (\(index));",
      document: Self.ann,
      local: """
        INSERT INTO person VALUES (1, 'Bob', 1), (2, 'Ann', 3);
        INSERT INTO address VALUES (1, 1, 'home', 'B'), (2, 2, 'home', 'C'), (3, 2, 'work', 'D');
        """, prefer: prefer)
    #expect(merged.insertedRows == 3 && merged.refusedRows == 0 && merged.differingCells == 2)
    let ann =
      prefer == .document ? ["Ann|home|A|1", "Ann|work|D|0"] : ["Ann|home|C|0", "Ann|work|D|1"]
    try converge(devices, Self.ofPersons, ann + ["Bob|home|B|1"])
    try expectSound(devices)
  }

  /// If the document cannot have one of the rows, no other row of it takes its place.
  @Test func newRowsInACircleAreMergedTogetherOrNotAtAll() throws {
    let schema = Self.addresses + "CREATE UNIQUE INDEX named ON person (name);"
    let (devices, merged) = try scratch.merge(
      schema.replacing("street TEXT", with: "street TEXT CHECK (street <> '')"),
      document: Self.ann,
      local: """
        INSERT INTO person VALUES (1, 'Bob', 1), (2, 'Cid', 2), (4, 'Ann', 4);
        INSERT INTO address VALUES (1, 1, 'home', ''), (2, 2, 'home', 'C'), (3, 1, 'work', 'D'),
          (4, 4, 'work', ''), (5, 4, 'club', 'E');
        """, localSchema: schema)
    #expect(merged.refusedRows == 4 && merged.insertedRows == 3 && merged.differingCells == 1)
    try converge(devices, Self.ofPersons, ["Ann|club|E|0", "Ann|home|A|1", "Cid|home|C|1"])
    let entries = try devices[1].store.conflicts()
    #expect(Set(entries.map(\.kind)) == [.condition, .reference, .cell])
    // Their numbers are those of other rows in the document. The entries name the rows to which they referred.
    let cells = entries.flatMap { $0.local.cells ?? [] }
    let rows = Set(entries.map { Value.identity($0.identity) })
    #expect(cells.filter { rows.contains($0.value) }.count == 5)
    try expectSound(devices)
  }

  @Test(arguments: ["x", "y"])
  func circlesOfThreeAreTheSameIfAllOfTheirRowsAre(value: String) throws {
    let names = ["a", "b", "c"]
    let schema = zip(names, ["b", "c", "a"]).map {
      "CREATE TABLE \($0) (id INTEGER PRIMARY KEY, \($1) INTEGER REFERENCES \($1), v TEXT);"
    }.joined()
    func rows(_ last: String) -> String {
      zip(names, ["x", "x", last]).map { "INSERT INTO \($0) VALUES (1, 1, '\($1)');" }.joined()
    }
    let (devices, merged) = try scratch.merge(schema, document: rows("x"), local: rows(value))
    #expect(merged.equalRows == (value == "x" ? 3 : 0))
    #expect(merged.insertedRows == (value == "x" ? 0 : 3))
    try converge(
      devices,
      "SELECT a.v, b.v, c.v FROM a JOIN b ON b.id = a.b JOIN c ON c.id = b.c WHERE c.a = a.id "
        + "ORDER BY 3", value == "x" ? ["x|x|x"] : ["x|x|x", "x|x|y"])
    try expectSound(devices)
  }

  /// Keys consist of references to rows in the circle.
  @Test(arguments: ["", " WITHOUT ROWID"], [false, true])
  func rowsInACircleAreKnownByOneAnother(suffix: String, isDeclared: Bool) throws {
    var configuration = StoreConfiguration()
    if isDeclared { configuration.identities = ["person": .columns(["name"])] }
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, owner INTEGER, label TEXT,
        FOREIGN KEY (owner, label) REFERENCES address (person, label));
      CREATE TABLE address (person INTEGER NOT NULL REFERENCES person (id), label TEXT NOT NULL, street TEXT,
        PRIMARY KEY (person, label))\(suffix);
      """,
      document: """
        INSERT INTO person VALUES (1, 'Ann', 1, 'home'); INSERT INTO address VALUES (1, 'home', 'A');
        """,
      local: """
        INSERT INTO person VALUES (1, 'Bob', 1, 'home'), (2, 'Ann', 2, 'home'), (3, 'Cid', 1, 'home');
        INSERT INTO address VALUES (1, 'home', 'B'), (2, 'home', 'A');
        """, configuration: configuration)
    #expect(merged.equalRows == 2 && merged.insertedRows == 3)
    try converge(
      devices,
      "SELECT p.name, o.name, street FROM person p JOIN address a ON a.person = p.owner "
        + "AND a.label = p.label JOIN person o ON o.id = a.person ORDER BY 1",
      ["Ann|Ann|A", "Bob|Bob|B", "Cid|Bob|B"])
    try expectSound(devices)
  }

  /// Each row of a long list refers to the one before and to the one after it.
  @Test func theStepsForCirclesGrowWithTheirRows() throws {
    let schema = """
      CREATE TABLE t (id INTEGER PRIMARY KEY, before INTEGER REFERENCES t, after INTEGER REFERENCES t, v);
      """
    let steps = try [250, 500].map { count in
      let rows = """
        WITH RECURSIVE n (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < \(count))
        INSERT INTO t SELECT v, nullif(v - 1, 0), iif(v < \(count), v + 1, NULL), '
        """
      let first = try scratch.devices(1, "PRAGMA foreign_keys = OFF; \(schema)\(rows)a' FROM n")[0]
      let database = scratch.path + "/local-\(count).db"
      try Program(database).run("PRAGMA foreign_keys = OFF; \(schema)\(rows)b' FROM n")
      let path = scratch.path + "/joined-\(count).db"
      _ = try first.outgoing()
      _ = try first.store.snapshot(to: path)
      try first.store.close()
      try FileManager.default.removeItem(atPath: first.path)
      let counter = StepCounter()
      let (store, merged) = try LocalStore.adopt(
        snapshotAt: path, mergingDatabaseAt: database, binding: scratch.binding("\(count)"),
        catchUp: counter.watch)
      #expect(merged.insertedRows == count)
      try store.close()
      return counter.count
    }
    #expect(steps[1] < 3 * steps[0], "\(steps)")
  }

  /// A number that refers to no row there does not refer to a row that gets it here.
  @Test func numbersOfNoRowStayPlainInATableThatRefersToItself() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["part": ["up": "part"]]
    let (devices, _) = try scratch.merge(
      "CREATE TABLE part (id INTEGER PRIMARY KEY, up INTEGER NOT NULL DEFAULT 0, name TEXT);",
      document: "INSERT INTO part VALUES (1, 0, 'a'), (2, 1, 'b'), (3, 2, 'c');",
      local: "INSERT INTO part VALUES (1, 4, 'x'), (2, 0, 'y'), (3, 2, 'z');",
      configuration: configuration)
    try converge(
      devices,
      "SELECT p.name, iif(p.up IN (0, 4), p.up, u.name) FROM part p LEFT JOIN part u ON u.id = p.up "
        + "ORDER BY 1", ["a|0", "b|a", "c|b", "x|4", "y|0", "z|y"])
    for device in devices { #expect(try device.rows("SELECT 1 FROM part WHERE id = 4") == []) }
    try expectSound(devices)
  }
}
