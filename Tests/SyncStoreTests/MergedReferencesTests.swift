import SyncModel
import Testing

@testable import SyncStore

/// References of rows that a database brings into a document lead to the same rows as before.
@Suite struct MergedReferencesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  // MARK: - References to other columns than the key

  private static let tenants = """
    CREATE TABLE tenant (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE person (id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL REFERENCES tenant, name TEXT NOT NULL,
      UNIQUE (tenant, id));
    CREATE TABLE task (id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL REFERENCES tenant,
      person INTEGER, body TEXT, last INTEGER, FOREIGN KEY (tenant, person) REFERENCES person (tenant, id),
      FOREIGN KEY (tenant, last) REFERENCES person (tenant, id));
    CREATE TABLE mark (tenant INTEGER, person INTEGER, body TEXT,
      FOREIGN KEY (tenant, person) REFERENCES person (tenant, id));
    """

  /// Excluded tables and columns refer in the same way.
  @Test(arguments: [false, true])
  func referencesOfSeveralColumnsFollowTheirRows(isInPlace: Bool) throws {
    var configuration = AppTriggerTests.excluding("mark")
    configuration.excludedColumns = ["task": ["last"]]
    let (devices, merged) = try scratch.merge(
      Self.tenants,
      document: """
        INSERT INTO tenant VALUES (1, 'Acme'), (2, 'Bolt'); INSERT INTO person VALUES (1, 1, 'Ann');
        INSERT INTO task VALUES (1, 1, 1, 'call', NULL);
        """,
      local: """
        INSERT INTO tenant VALUES (1, 'Bolt'), (2, 'Acme'); INSERT INTO person VALUES (1, 2, 'Bob');
        INSERT INTO task VALUES (1, 2, 1, 'write', 1), (2, 1, NULL, 'wait', NULL);
        INSERT INTO mark VALUES (2, 1, 'x'), (1, NULL, 'y');
        """, configuration: configuration, isInPlace: isInPlace)
    #expect(merged.refusedRows == 0 && merged.insertedRows == 3)
    try converge(
      devices,
      "SELECT body, t.name, p.name FROM task JOIN tenant t ON t.id = task.tenant "
        + "LEFT JOIN person p ON p.id = person ORDER BY 1",
      ["call|Acme|Ann", "wait|Bolt|NULL", "write|Acme|Bob"])
    #expect(
      try devices[1].rows(
        "SELECT body, t.name, p.name FROM mark JOIN tenant t ON t.id = mark.tenant "
          + "LEFT JOIN person p ON p.id = person ORDER BY 1") == ["x|Acme|Bob", "y|Bolt|NULL"])
    #expect(
      try devices[1].rows("SELECT body, name FROM task t JOIN person p ON p.id = last")
        == ["write|Bob"])
    try expectSound(devices)
  }

  /// A row of the document to which others refer keeps the value by which they do.
  @Test(arguments: MergedRows.Preference.allCases, [false, true])
  func referencesToUniqueValuesFollowTheirRows(
    prefer: MergedRows.Preference, isReferred: Bool
  ) throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE currency (id INTEGER PRIMARY KEY, code TEXT UNIQUE, name TEXT UNIQUE);
      CREATE TABLE price (id INTEGER PRIMARY KEY, currency TEXT REFERENCES currency (code), amount INTEGER);
      CREATE TABLE mark (currency TEXT REFERENCES currency (code));
      """,
      document: "INSERT INTO currency VALUES (1, 'EUR', 'Euro'), (2, 'USD', 'Dollar');"
        + (isReferred ? "INSERT INTO price VALUES (1, 'EUR', 10);" : ""),
      local: """
        INSERT INTO currency VALUES (1, 'EU', 'Euro'), (2, 'CHF', 'Franc');
        INSERT INTO price VALUES (2, 'EU', 20), (3, 'CHF', 30); INSERT INTO mark VALUES ('EU');
        """, prefer: prefer, configuration: AppTriggerTests.excluding("mark"))
    #expect(merged.refusedRows == 0)
    let code = prefer == .local && !isReferred ? "EU" : "EUR"
    try converge(
      devices, "SELECT amount, currency FROM price ORDER BY 1",
      (isReferred ? ["10|EUR"] : []) + ["20|\(code)", "30|CHF"])
    #expect(try devices[0].rows("SELECT code FROM currency WHERE name = 'Euro'") == [code])
    #expect(try devices[1].rows("SELECT * FROM mark") == [code])
    try expectSound(devices)
  }

  /// The row to which the reference leads is new.
  @Test(arguments: MergedRows.Preference.allCases)
  func aReferenceThatDiffersIsThatOfOneSide(prefer: MergedRows.Preference) throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE orders (id INTEGER PRIMARY KEY, code TEXT UNIQUE, customer INTEGER REFERENCES customer);
      """,
      document: "INSERT INTO customer VALUES (1, 'Ann'); INSERT INTO orders VALUES (1, 'x', 1);",
      local: "INSERT INTO customer VALUES (1, 'Bob'); INSERT INTO orders VALUES (1, 'x', 1);",
      prefer: prefer)
    #expect(merged.differingCells == 1)
    try converge(
      devices, "SELECT name FROM orders JOIN customer c ON c.id = customer",
      [prefer == .local ? "Bob" : "Ann"])
    try expectSound(devices)
  }

  @Test func whatRefersToARefusedRowByAUniqueValueIsInTheJournal() throws {
    let (schema, condition) = (
      """
      CREATE TABLE currency (id INTEGER PRIMARY KEY, code TEXT UNIQUE, digits INTEGER);
      CREATE TABLE price (id INTEGER PRIMARY KEY, currency TEXT REFERENCES currency (code));
      """, "digits INTEGER CHECK (digits >= 0)"
    )
    let (devices, merged) = try scratch.merge(
      schema.replacing("digits INTEGER", with: condition), document: "",
      local: """
        INSERT INTO currency VALUES (1, 'EUR', 2), (2, 'X', -1); INSERT INTO price VALUES (1, 'EUR'), (2, 'X');
        """, localSchema: schema)
    #expect(merged.refusedRows == 2 && merged.insertedRows == 2)
    #expect(try devices[1].store.conflicts().map(\.kind) == [.reference, .condition])
    try converge(devices, "SELECT id, currency FROM price", ["1|EUR"])
    try expectSound(devices)
  }

  /// The unique column is a reference itself, so its numbers differ on every device.
  @Test func referencesToReferencesFollowTheirRows() throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE account (id INTEGER PRIMARY KEY, mail TEXT UNIQUE);
      CREATE TABLE person (id INTEGER PRIMARY KEY, account INTEGER UNIQUE REFERENCES account, name TEXT);
      CREATE TABLE badge (id INTEGER PRIMARY KEY, account INTEGER REFERENCES person (account), title TEXT);
      """,
      document: """
        INSERT INTO account VALUES (1, 'a'), (2, 'c'); INSERT INTO person VALUES (1, 1, 'Ann'), (2, 2, 'Cid');
        INSERT INTO badge VALUES (1, 1, 'x');
        """,
      local: """
        INSERT INTO account VALUES (1, 'b'), (2, 'c'); INSERT INTO person VALUES (1, 1, 'Bob'), (2, 2, 'Cid');
        INSERT INTO badge VALUES (1, 1, 'x'), (2, 2, 'y');
        """)
    #expect(merged.refusedRows == 0)
    try converge(
      devices, "SELECT title, name FROM badge JOIN person p USING (account) ORDER BY 2",
      ["x|Ann", "x|Bob", "y|Cid"])
    try expectSound(devices)
  }

  @Test func referencesWithinATableFollowTheirRows() throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE staff (id INTEGER PRIMARY KEY, code TEXT UNIQUE, name TEXT UNIQUE,
        boss TEXT REFERENCES staff (code));
      """,
      document: "INSERT INTO staff VALUES (1, 'a', 'Ann', 'a'), (2, 'b', 'Bob', 'a');",
      local: """
        INSERT INTO staff VALUES (1, 'x', 'Bob', 'y'), (2, 'y', 'Ann', 'y'), (3, 'z', 'Cid', 'x'),
          (4, 'v', 'Dan', 'w'), (5, 'w', 'Eve', 'v');
        """)
    #expect(merged.refusedRows == 0 && merged.differingCells == 2)
    try converge(
      devices, "SELECT name, boss FROM staff ORDER BY 1",
      ["Ann|a", "Bob|a", "Cid|b", "Dan|w", "Eve|v"])
    try expectSound(devices)
  }

  // MARK: - Columns that stay on the device, and forms of numbers

  /// The column refers to a table that is merged later.
  @Test(arguments: [false, true])
  func excludedColumnsFollowTheirRows(isInPlace: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["last"], "tag": ["last"]]
    configuration.identities = ["tag": .columns(["name"])]
    let (devices, _) = try scratch.merge(
      """
      CREATE TABLE picture (id INTEGER PRIMARY KEY, file TEXT, note TEXT REFERENCES note);
      CREATE TABLE note (id TEXT PRIMARY KEY, last INTEGER REFERENCES picture (id) ON DELETE SET NULL);
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, last TEXT REFERENCES picture (id));
      """,
      document: """
        INSERT INTO picture VALUES (1, 'a', NULL); INSERT INTO note VALUES ('n', NULL);
        INSERT INTO tag VALUES (1, 'red', NULL);
        """,
      local: """
        INSERT INTO picture VALUES (1, 'b', NULL), (5, 'e', 'm'); INSERT INTO note VALUES ('n', 1), ('m', 5);
        INSERT INTO tag VALUES (1, 'blue', '5'), (2, 'red', '1');
        """, configuration: configuration, isInPlace: isInPlace)
    try converge(devices, "SELECT id FROM note ORDER BY 1", ["m", "n"])
    #expect(
      try devices[1].rows("SELECT n.id, file FROM note n JOIN picture p ON p.id = last ORDER BY 1")
        == ["m|e", "n|b"])
    #expect(
      try devices[1].rows("SELECT name, file FROM tag JOIN picture p ON p.id = last ORDER BY 1")
        == ["blue|e", "red|b"])
    try expectSound(devices)
  }

  @Test func excludedColumnsOfRowsWithoutAKeyFollowTheirRows() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["last"]]
    let (devices, _) = try scratch.merge(
      """
      CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT, last INTEGER REFERENCES picture (id));
      CREATE TABLE picture (id INTEGER PRIMARY KEY, file TEXT);
      """, document: "INSERT INTO picture VALUES (1, 'a');",
      local: "INSERT INTO picture VALUES (1, 'b'); INSERT INTO note VALUES (NULL, 'x', 1);",
      configuration: configuration)
    #expect(
      try devices[1].rows("SELECT body, file FROM note JOIN picture p ON p.id = last") == ["x|b"])
    try converge(devices)
  }

  @Test(arguments: ["TEXT", "VARCHAR(9)", "REAL", "NUMERIC"])
  func aNumberTakesTheFormOfItsColumn(type: String) throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE label (id INTEGER PRIMARY KEY, tag \(type) REFERENCES tag (id), text TEXT);
      """,
      document: """
        INSERT INTO tag VALUES (1, 'red'), (2, 'blue'); INSERT INTO label VALUES (1, 2, 'sky');
        """,
      local: """
        INSERT INTO tag VALUES (1, 'blue'), (2, 'red'); INSERT INTO label VALUES (1, 1, 'sky'), (2, 2, 'lip');
        """)
    #expect(merged.equalRows == 3 && merged.insertedRows == 1)
    try converge(
      devices, "SELECT text, name FROM label JOIN tag ON tag.id = label.tag ORDER BY 1",
      ["lip|red", "sky|blue"])
    try expectSound(devices)
  }

  /// The database ignores the case in its keys, and the document does not.
  @Test func aReferenceThatSpellsTheKeyOtherwiseLeadsToTheRow() throws {
    let scratch = try Scratch()
    let schema =
      "CREATE TABLE p (k TEXT PRIMARY KEY); "
      + "CREATE TABLE c (id INTEGER PRIMARY KEY, r TEXT REFERENCES p (k)); "
    let (devices, merged) = try scratch.merge(
      schema, document: "INSERT INTO p VALUES ('b')",
      local: "INSERT INTO p VALUES ('a'); INSERT INTO c VALUES (1, 'A')",
      localSchema: schema.replacingOccurrences(
        of: "TEXT PRIMARY", with: "TEXT COLLATE NOCASE PRIMARY"))
    #expect(merged.refusedRows == 0 && merged.insertedRows == 2)
    try converge(devices, "SELECT r FROM c", ["a"])
    try expectSound(devices)
  }
}
