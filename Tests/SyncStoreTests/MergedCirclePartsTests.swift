import SyncModel
import Synchronization
import Testing

@testable import SyncStore

/// Rows in circles of references, and the rows and values to which the circles lead.
@Suite struct MergedCirclePartsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  // MARK: - Tables to which a circle refers

  /// The identifiers of tables follow their names, so the circle is found before or after the table.
  private static func homes(_ country: String, check: String = "") -> String {
    """
    CREATE TABLE address (id INTEGER PRIMARY KEY, person INTEGER REFERENCES person (id),
      country INTEGER REFERENCES \(country) (id), street TEXT);
    CREATE TABLE \(country) (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE\(check));
    CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, address INTEGER REFERENCES address (id));
    """
  }

  private static func document(_ country: String) -> String {
    """
    INSERT INTO \(country) VALUES (1, 'Austria'), (2, 'Brazil');
    INSERT INTO person VALUES (1, 'Ann', 1); INSERT INTO address VALUES (1, 1, 1, 'A');
    """
  }

  private static func local(_ country: String) -> String {
    """
    INSERT INTO \(country) VALUES (1, 'Chile'), (2, 'Austria');
    INSERT INTO person VALUES (1, 'Bob', 1), (2, 'Cid', NULL);
    INSERT INTO address VALUES (1, 1, 1, 'B'), (2, 2, 2, 'C');
    """
  }

  private static func streets(_ country: String) -> String {
    "SELECT street, p.name, c.name FROM address a JOIN person p ON p.id = person "
      + "JOIN \(country) c ON c.id = country ORDER BY 1"
  }

  @Test(arguments: ["aland", "country", "zone"])
  func rowsInACircleLeadToTheSameRowsOutsideOfIt(country: String) throws {
    let (devices, merged) = try scratch.merge(
      Self.homes(country), document: Self.document(country), local: Self.local(country))
    #expect(merged.refusedRows == 0 && merged.insertedRows == 5)
    try converge(
      devices, Self.streets(country), ["A|Ann|Austria", "B|Bob|Chile", "C|Cid|Austria"])
    try expectSound(devices)
  }

  /// If the document cannot have the row outside of the circle, it cannot have those that refer to it.
  @Test(arguments: ["aland", "country", "zone"])
  func rowsInACircleDoNotReferToAnotherThanTheRefusedRow(country: String) throws {
    let (devices, merged) = try scratch.merge(
      Self.homes(country, check: " CHECK (name <> 'Chile')"), document: Self.document(country),
      local: Self.local(country), localSchema: Self.homes(country))
    #expect(merged.refusedRows == 3 && merged.insertedRows == 2)
    try converge(devices, Self.streets(country), ["A|Ann|Austria", "C|Cid|Austria"])
    let entries = try devices[1].store.conflicts()
    #expect(entries.map(\.kind).filter { $0 == .reference }.count == 2)
    try expectSound(devices)
  }

  // MARK: - Rows that the document cannot have

  private static let orders = """
    CREATE TABLE country (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT UNIQUE, address INTEGER REFERENCES address (id));
    CREATE TABLE address (id INTEGER PRIMARY KEY, person INTEGER REFERENCES person (id),
      country INTEGER REFERENCES country (id), street TEXT);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER REFERENCES person (id), what TEXT);
    """

  /// A row in a circle refers to none. The others stay, with the rows that refer to them.
  @Test(arguments: [1, 2], [1, 2])
  func rowsThatTheDocumentHasStayIfNewOnesAreRefused(number: Int, address: Int) throws {
    let (devices, merged) = try scratch.merge(
      Self.orders,
      document: """
        INSERT INTO country VALUES (9, 'Austria'); INSERT INTO person VALUES (1, 'ann', 1);
        INSERT INTO address VALUES (1, 1, NULL, 'A');
        """,
      local: """
        INSERT INTO person VALUES (\(number), 'ann', \(address));
        INSERT INTO address VALUES (\(address), \(number), 9, 'B');
        INSERT INTO orders VALUES (1, \(number), 'book');
        """)
    #expect(merged.refusedRows == 1 && merged.insertedRows == 1 && merged.differingCells == 1)
    try converge(
      devices,
      "SELECT email, what, street FROM orders o JOIN person p ON p.id = o.person "
        + "JOIN address a ON a.id = address", ["ann|book|A"])
    let entries = try devices[1].store.conflicts()
    #expect(Set(entries.map(\.kind)) == [.reference, .cell])
    try expectSound(devices)
  }

  /// Two references share a column, and one of their rows has another value in the document.
  @Test func aRowThatRefersToTwoRowsByOneColumnSaysSo() throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE a (id INTEGER PRIMARY KEY, code TEXT UNIQUE, name TEXT UNIQUE);
      CREATE TABLE b (id INTEGER PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE c (id INTEGER PRIMARY KEY, r TEXT REFERENCES a (code) REFERENCES b (code));
      """,
      document: "INSERT INTO a VALUES (1, 'p', 'x'); INSERT INTO b VALUES (1, 'q');",
      local: """
        INSERT INTO a VALUES (1, 'q', 'x'); INSERT INTO b VALUES (1, 'q'); INSERT INTO c VALUES (1, 'q');
        """)
    #expect(merged.refusedRows == 1)
    try converge(devices, "SELECT 1 FROM c", [])
    let entries = try devices[1].store.conflicts().filter { $0.kind == .reference }
    #expect(entries.map(\.message) == [DatabaseMerge.contradictory])
    try expectSound(devices)
  }

  /// A new row of a circle that refers to none goes to the journal. Another one that refers to a row
  /// that the document has does not.
  @Test func rowsThatReferToMatchedRowsStay() throws {
    let (devices, merged) = try scratch.merge(
      "CREATE TABLE n (id INTEGER PRIMARY KEY, name TEXT UNIQUE, r INTEGER REFERENCES n (id), "
        + "o INTEGER REFERENCES o (id)); CREATE TABLE o (id INTEGER PRIMARY KEY);",
      document: "INSERT INTO o VALUES (9); INSERT INTO n VALUES (7, 'm', NULL, NULL);",
      local: "INSERT INTO n VALUES (1, 'm', 2, NULL), (2, 'x', 3, 9), (3, 'y', 1, NULL);")
    #expect(merged.refusedRows == 1 && merged.insertedRows == 1)
    try converge(
      devices, "SELECT n.name, p.name FROM n LEFT JOIN n p ON p.id = n.r ORDER BY 1",
      ["m|NULL", "y|m"])
    try expectSound(devices)
  }

  /// A column of a lost reference leads to a row by another reference.
  @Test func onlyTheLostColumnsOfAReferenceDiffer() throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE project (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE task (id INTEGER PRIMARY KEY, name TEXT UNIQUE, project INTEGER REFERENCES project (id),
        up INTEGER, other INTEGER REFERENCES project (id), UNIQUE (project, id),
        FOREIGN KEY (project, up) REFERENCES task (project, id));
      """,
      document:
        "INSERT INTO project VALUES (1, 'p'), (8, 'q'); INSERT INTO task VALUES (1, 'a', 1, NULL, NULL);",
      local: """
        INSERT INTO project VALUES (1, 'p');
        INSERT INTO task VALUES (1, 'a', 1, 2, NULL), (2, 'b', 1, 1, 8);
        """)
    #expect(merged.refusedRows == 1 && merged.differingCells == 1)
    let entries = try devices[1].store.conflicts().filter { $0.kind == .cell }
    #expect(entries.map(\.column) == ["up"])
    try converge(devices, "SELECT name, project, up FROM task", ["a|1|NULL"])
    try expectSound(devices)
  }

  // MARK: - Keys

  private static func files(_ collation: String, _ reference: String) -> String {
    "CREATE TABLE f (id TEXT \(collation) PRIMARY KEY NOT NULL, up TEXT \(reference), v TEXT);"
  }

  /// Keys that are two in the database are one in the document.
  @Test(arguments: ["", "REFERENCES f"], ["NULL", "'A'", "'a'"])
  func rowsWhoseKeysAreOneInTheDocumentAreCompared(reference: String, up: String) throws {
    let (devices, merged) = try scratch.merge(
      Self.files("COLLATE NOCASE", reference), document: "INSERT INTO f VALUES ('b', NULL, 'b');",
      local: """
        INSERT INTO f VALUES ('A', NULL, 'one'), ('a', \(up), 'two'), ('c', 'a', 'three');
        """, localSchema: Self.files("", reference))
    #expect(merged.insertedRows == 2 && merged.differingRows == 1 && merged.refusedRows == 0)
    try converge(devices, "SELECT id, v FROM f ORDER BY v", ["b|b", "A|one", "c|three"])
    let entries = try devices[1].store.conflicts()
    #expect(entries.contains { $0.local.cells?.contains { $0.value == .text("two") } ?? false })
    try expectSound(devices)
  }

  /// The greatest number is taken, so that a new row gets any other. The first that is tried is taken,
  /// too.
  @Test func newRowsInACircleGetFreeNumbersBesideTheGreatest() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["part": .columns(["name"])]
    var options = StoreOptions()
    let count = Mutex<UInt64>(0)
    options.random = {
      count.withLock {
        $0 += 1
        return $0 % 4 < 2 ? 7 << 1 : 8 << 1
      }
    }
    let (devices, merged) = try scratch.merge(
      "CREATE TABLE part (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, up INTEGER REFERENCES part);",
      document: "INSERT INTO part VALUES (1, 'a', 1), (7, 'c', NULL), (\(Int64.max), 'z', NULL);",
      local: "INSERT INTO part VALUES (1, 'b', 1);", configuration: configuration, options: options)
    #expect(merged.refusedRows == 0 && merged.insertedRows == 1)
    #expect(try devices[1].rows("SELECT id FROM part WHERE name = 'b'") == ["8"])
    try converge(
      devices, "SELECT p.name, u.name FROM part p LEFT JOIN part u ON u.id = p.up ORDER BY 1",
      ["a|a", "b|b", "c|NULL", "z|NULL"])
    try expectSound(devices)
  }
}
