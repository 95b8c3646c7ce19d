import SyncModel
import Testing

@testable import SyncStore

/// What makes two rows the same, by choice and by default, and what is
/// refused.
@Suite struct RowIdentityTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func configuration(
    _ identities: [SQLName: StoreConfiguration.Identity] = [:],
    references: [SQLName: [SQLName: SQLName]] = [:]
  ) -> StoreConfiguration {
    var configuration = StoreConfiguration()
    configuration.identities = identities
    configuration.references = references
    return configuration
  }

  private func plan(
    _ sql: String, _ configuration: StoreConfiguration = StoreConfiguration()
  ) throws -> StorePlan {
    let path = scratch.path + "/plan\(UInt32.random(in: 0 ... .max)).db"
    try Program(path).run(sql)
    return try LocalStore.plan(at: path, configuration: configuration)
  }

  private func expectRefusal(
    _ sql: String, _ configuration: StoreConfiguration = StoreConfiguration(),
    code: StoreError.Code = .unsupportedSchema, saying message: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(sourceLocation: sourceLocation) {
      try plan(sql, configuration)
    } throws: { error in
      guard let error = error as? StoreError else { return false }
      return error.code == code && error.description.contains(message)
    }
  }

  /// A row whose key is a reference gets another identity with the row to which it refers. Until that
  /// edit is sent, its own table has nothing to send.
  @Test func aRowWithUnsentEditsIsSoundUnderItsNewName() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, code INTEGER NOT NULL UNIQUE);
      CREATE TABLE shop (id INTEGER PRIMARY KEY REFERENCES place (id), name TEXT);
      CREATE TABLE bar (id INTEGER PRIMARY KEY REFERENCES shop (id), stars INTEGER);
      INSERT INTO place VALUES (1, 2);
      """, configuration: configuration(["place": .columns(["code"])]))
    try devices[1].run("INSERT INTO shop VALUES (1, 'a'); INSERT INTO bar VALUES (1, 3)")
    try converge(devices, "SELECT name, stars FROM shop JOIN bar USING (id)", ["a|3"])
    try devices[0].run("UPDATE place SET code = 5")
    let report = try LocalStore.verify(at: devices[0].path).report
    #expect(report.findings == [])
    #expect(report.leftOut.count == 1)
    try converge(devices, "SELECT code, stars FROM place JOIN bar USING (id)", ["5|3"])
    #expect(try LocalStore.verify(at: devices[0].path).report.findings == [])
  }

  @Test func aColumnThatRefersToRowsOfTwoTablesIsRefused() throws {
    let sql = """
      CREATE TABLE one (id INTEGER PRIMARY KEY);
      CREATE TABLE two (id INTEGER PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE child (id INTEGER PRIMARY KEY, a INTEGER REFERENCES one REFERENCES two);
      """
    expectRefusal(sql, saying: "refers to rows of \"one\" and of \"two\"")
    expectRefusal(
      sql, saying: "“Identify one by its primary key” and “Identify two by its primary key”")
    var configuration = StoreConfiguration()
    configuration.identities = ["one": .primaryKey, "two": .primaryKey]
    _ = try plan(sql, configuration)
    configuration = StoreConfiguration()
    configuration.excludedColumns["child"] = ["a"]
    _ = try plan(sql, configuration)
    configuration = StoreConfiguration()
    configuration.references["child"] = ["b": "two"]
    expectRefusal(
      sql.replacing("REFERENCES two", with: ", b INTEGER REFERENCES one"), configuration,
      saying: "\"child\".\"b\" refers to rows of")
  }

  @Test func aJoinTableIsIdentifiedByTheRowsThatItJoins() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note_tag (note INTEGER REFERENCES note ON DELETE CASCADE,
        tag INTEGER REFERENCES tag ON DELETE CASCADE, weight REAL, PRIMARY KEY (note, tag));
      CREATE TABLE mark (note INTEGER, tag INTEGER, n INTEGER, text TEXT, PRIMARY KEY (note, tag, n),
        FOREIGN KEY (note, tag) REFERENCES note_tag ON DELETE CASCADE) WITHOUT ROWID;
      INSERT INTO note VALUES (1, 'shared'); INSERT INTO tag VALUES (1, 'shared');
      """)
    // The same keys on both devices, for different rows.
    for (number, device) in devices.enumerated() {
      try device.run(
        """
        INSERT INTO note VALUES (2, 'n\(number)'); INSERT INTO tag VALUES (2, 't\(number)');
        INSERT INTO note_tag VALUES (2, 2, \(number)), (1, 2, 0.5), (2, 1, 0.25);
        INSERT INTO mark VALUES (2, 2, 1, 'm\(number)');
        """)
    }
    // And one pair that both join.
    for device in devices { try device.run("INSERT INTO note_tag VALUES (1, 1, 1)") }
    let query = """
      SELECT title, name, weight, text FROM note_tag JOIN note ON note.id = note
        JOIN tag ON tag.id = note_tag.tag LEFT JOIN mark USING (note, tag) ORDER BY title, name
      """
    try converge(
      devices, query,
      [
        "n0|shared|0.25|NULL", "n0|t0|0.0|m0", "n1|shared|0.25|NULL", "n1|t1|1.0|m1",
        "shared|shared|1.0|NULL", "shared|t0|0.5|NULL", "shared|t1|0.5|NULL",
      ])
    try devices[0].run(
      "UPDATE note_tag SET weight = 9 WHERE note = (SELECT id FROM note WHERE title = 'n1')")
    try devices[1].run("DELETE FROM note WHERE title = 'n0'")
    try converge(
      devices, query,
      [
        "n1|shared|9.0|NULL", "n1|t1|9.0|m1", "shared|shared|1.0|NULL", "shared|t0|0.5|NULL",
        "shared|t1|0.5|NULL",
      ])
  }

  @Test func declaredColumnsMakeRowsTheSame() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, mail TEXT NOT NULL UNIQUE COLLATE NOCASE, name);
      CREATE TABLE visit (id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES person,
        day TEXT NOT NULL, note, UNIQUE (person, day));
      INSERT INTO person VALUES (1, 'a@x', 'A');
      """,
      configuration: configuration([
        "person": .columns(["mail"]), "visit": .columns(["person", "day"]),
      ]))
    try devices[0].setClock(offset: -3_600)
    try devices[0].run(
      "INSERT INTO person VALUES (7, 'b@x', 'left'); INSERT INTO visit VALUES (1, 7, 'mon', 'l')")
    try devices[1].run("INSERT INTO person VALUES (9, 'B@X', 'right'), (7, 'c@x', 'C')")
    try devices[1].run("INSERT INTO visit VALUES (1, 9, 'mon', 'r'), (2, 7, 'tue', 'r')")
    let query =
      "SELECT mail, name, day, note FROM person LEFT JOIN visit ON person = person.id ORDER BY 1"
    try converge(
      devices, query, ["a@x|A|NULL|NULL", "B@X|right|mon|r", "c@x|C|tue|r"])
    #expect(try devices[0].rows("SELECT id FROM person WHERE name = 'right'") == ["7"])
    #expect(try devices[1].rows("SELECT id FROM person WHERE name = 'right'") == ["9"])
    // The rowid of one taken by REPLACE, and another's natural key.
    try devices[0].run("PRAGMA foreign_keys = OFF; DELETE FROM visit")
    try devices[0].run(
      "REPLACE INTO person VALUES (1, 'new@x', 'N'); REPLACE INTO person (mail, name) VALUES ('c@x', 'D')"
    )
    try devices[0].run("UPDATE OR REPLACE person SET id = 1 WHERE mail = 'b@x'")
    try converge(devices, "SELECT mail, name FROM person ORDER BY mail", ["B@X|right", "c@x|D"])
    try devices[1].run("UPDATE OR REPLACE person SET mail = 'C@x' WHERE name = 'right'")
    try converge(devices, "SELECT mail, name FROM person", ["C@x|right"])
  }

  @Test func rowsWithDeclaredKeysGoAndMoveWithTheirChildren() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, mail TEXT NOT NULL UNIQUE);
      CREATE TABLE visit (id INTEGER PRIMARY KEY, person INTEGER NOT NULL
        REFERENCES person ON DELETE CASCADE, day TEXT NOT NULL, UNIQUE (person, day));
      CREATE TABLE photo (id INTEGER PRIMARY KEY, person INTEGER REFERENCES person ON DELETE SET NULL);
      INSERT INTO person VALUES (1, 'a@x'), (2, 'b@x');
      INSERT INTO visit VALUES (1, 1, 'mon'), (2, 2, 'tue'); INSERT INTO photo VALUES (1, 1), (2, 2);
      """,
      configuration: configuration([
        "person": .columns(["mail"]), "visit": .columns(["person", "day"]),
      ]))
    try devices[0].run("DELETE FROM person WHERE id = 1")
    try converge(
      devices, "SELECT mail, day FROM visit JOIN person ON person = person.id", ["b@x|tue"])
    try converge(devices, "SELECT * FROM photo ORDER BY id", ["1|NULL", "2|2"])
    try devices[0].run("DELETE FROM visit; UPDATE person SET mail = 'c@x'")
    try converge(
      devices, "SELECT photo.id, mail FROM photo LEFT JOIN person ON person = person.id ORDER BY 1",
      ["1|NULL", "2|c@x"])
    #expect(try devices.map { try $0.store.status().parked.count } == [0, 0])
  }

  @Test func aRowThatCannotFollowAReplacedOneGivesWay() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, mail TEXT NOT NULL UNIQUE);
      CREATE TABLE photo (id INTEGER PRIMARY KEY, person INTEGER UNIQUE REFERENCES person);
      INSERT INTO person VALUES (1, 'a@x'), (2, 'b@x'); INSERT INTO photo VALUES (1, 1), (2, 2);
      """, configuration: configuration(["person": .columns(["mail"])]))
    try devices[0].run(
      "PRAGMA foreign_keys = OFF; REPLACE INTO person (id, mail) VALUES (5, 'a@x')")
    try devices[0].run("INSERT INTO photo VALUES (3, 5)")
    let query = "SELECT photo.id, mail FROM photo LEFT JOIN person ON person = person.id ORDER BY 1"
    try converge(devices, query, ["2|b@x", "3|a@x"])
    #expect(try devices.map { try $0.store.status().parked.count } == [1, 1])
    try devices[1].run("DELETE FROM photo WHERE id = 3")
    try converge(devices, query, ["1|a@x", "2|b@x"])
  }

  @Test func integerKeysCanBeTheIdentityByChoice() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE year (n INTEGER PRIMARY KEY CHECK (n > 1000), text);
      CREATE TABLE event (id INTEGER PRIMARY KEY, year INTEGER REFERENCES year);
      INSERT INTO year VALUES (2000, 'old'); INSERT INTO event VALUES (1, 2000);
      """, configuration: configuration(["year": .primaryKey]))
    try devices[0].setClock(offset: -3_600)
    for (number, device) in devices.enumerated() {
      try device.run(
        "INSERT INTO year VALUES (2001, 'y\(number)'); INSERT INTO event VALUES (2, 2001)")
    }
    try converge(devices, "SELECT * FROM year", ["2000|old", "2001|y1"])
    try converge(devices, "SELECT year, count(*) FROM event GROUP BY 1", ["2000|1", "2001|2"])
  }

  @Test func referencesCanBeDeclared() throws {
    let schema = """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE lines (id INTEGER PRIMARY KEY, notes_id INTEGER, text TEXT);
      """
    let devices = try scratch.devices(
      2, schema, configuration: configuration(references: ["lines": ["notes_id": "notes"]]))
    for (number, device) in devices.enumerated() {
      try device.run(
        "INSERT INTO notes VALUES (1, 'n\(number)'); INSERT INTO lines VALUES (1, 1, 'l\(number)')")
    }
    try converge(
      devices, "SELECT title, text FROM notes JOIN lines ON notes_id = notes.id ORDER BY 1",
      ["n0|l0", "n1|l1"])
  }

  @Test(arguments: [
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v CHECK (v <> id))",
    "CREATE TABLE t (id INTEGER PRIMARY KEY CHECK (id > 0), v)",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v, CONSTRAINT c CHECK (\"ID\" > v))",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v, g AS (id + 1))",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v, g INT GENERATED ALWAYS AS (abs([id])) STORED)",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE INDEX i ON t (v, id % 2)",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE UNIQUE INDEX i ON t (v) WHERE id > 5",
  ])
  func aSurrogateKeyThatTheSchemaReadsIsRefused(sql: String) throws {
    expectRefusal(sql, saying: "the key is another number on every device")
    #expect(
      try plan(sql, configuration(["t": .primaryKey])).tables.map(\.identity) == [.primaryKey])
  }

  @Test func aSurrogateKeyThatTheSchemaOnlyNamesIsFine() throws {
    let plan = try plan(
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, up INTEGER REFERENCES t (id), v TEXT CHECK (v <> 'id'),
        /* CHECK (id > 0) */ g AS (lower(v))); -- AS (id)
      CREATE INDEX i ON t (v, id); CREATE UNIQUE INDEX "on (id)" ON t (id, v) WHERE v IS NOT NULL;
      """)
    #expect(plan.tables.map(\.identity) == [.surrogate])
  }

  @Test func tablesWithoutAPrimaryKeyAreRefusedWithTheRemedy() throws {
    let sql = "CREATE TABLE loose (a, b); CREATE TABLE t (k TEXT PRIMARY KEY)"
    expectRefusal(
      sql, saying: "The table \"loose\" has no primary key, so its rows cannot be told apart.")
    expectRefusal(
      sql,
      saying: "Give it one (for example a column “id INTEGER PRIMARY KEY”) or "
        + "leave the table out with “Exclude loose”.")
    let plan = try plan(sql, AppTriggerTests.excluding("LOOSE"))
    #expect(plan.tables.map(\.name) == ["t"] && plan.leftOut == ["loose": .excluded])
  }

  @Test func whatCannotBeSynchronizedIsRefused() throws {
    expectRefusal(
      """
      CREATE TABLE t (k TEXT PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE c (k TEXT PRIMARY KEY, code TEXT REFERENCES t (code));
      INSERT INTO t VALUES (NULL, 'x'), ('y', 'y'); INSERT INTO c VALUES ('a', 'x'), ('b', 'y')
      """, saying: "1 row of \"c\" refers to rows of \"t\" whose key is NULL")
    expectRefusal(
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE c (id INTEGER PRIMARY KEY, t INTEGER REFERENCES t);
      INSERT INTO t VALUES (1, NULL), (2, 'b'); INSERT INTO c VALUES (1, 1), (2, 1), (3, 2)
      """, configuration(["t": .columns(["name"])]),
      saying: "2 rows of \"c\" refer to rows of \"t\" whose key is NULL")
    expectRefusal(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a)", configuration(["t": .columns(["a"])]),
      code: .badConfiguration, saying: "not declared unique")
    expectRefusal(
      "CREATE TABLE t (k TEXT PRIMARY KEY)", configuration(["t": .surrogate]),
      code: .badConfiguration, saying: "has no INTEGER PRIMARY KEY")
    expectRefusal(
      "CREATE TABLE t (k TEXT PRIMARY KEY)", configuration(["u": .surrogate]),
      code: .badConfiguration, saying: "There is no table \"u\".")
    var excluding = StoreConfiguration()
    excluding.excludedColumns = ["t": ["v"]]
    expectRefusal(
      "CREATE TABLE t (k TEXT PRIMARY KEY, v UNIQUE)", excluding, code: .badConfiguration,
      saying: "is part of the unique index")
    expectRefusal(
      "CREATE TABLE t (k TEXT PRIMARY KEY, w, v); CREATE UNIQUE INDEX i ON t (w) WHERE v = 1",
      excluding, code: .badConfiguration, saying: "is part of the unique index \"i\"")
    expectRefusal(
      "CREATE TABLE t (k TEXT PRIMARY KEY, v NOT NULL)", excluding, code: .badConfiguration,
      saying: "is NOT NULL without a default")
    expectRefusal(
      "CREATE TABLE t (v TEXT PRIMARY KEY)", excluding, code: .badConfiguration,
      saying: "identifies the rows and cannot be excluded")
    expectRefusal(
      "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (k TEXT PRIMARY KEY, p REFERENCES p)",
      AppTriggerTests.excluding("p"), code: .badConfiguration,
      saying: "The table \"c\" refers to the excluded table \"p\"")
    expectRefusal(
      """
      PRAGMA foreign_keys = OFF; CREATE TABLE p (id INTEGER PRIMARY KEY);
      CREATE TABLE c (k TEXT PRIMARY KEY, p REFERENCES p); INSERT INTO c VALUES ('a', 1)
      """, code: .foreignKeysBroken,
      saying: "1 reference leads to missing rows: 1 from \"c\" to \"p\".")
    expectRefusal(
      """
      PRAGMA foreign_keys = OFF; CREATE TABLE p (id INTEGER PRIMARY KEY);
      CREATE TABLE q (k TEXT PRIMARY KEY);
      CREATE TABLE c (k TEXT PRIMARY KEY, p REFERENCES p, q REFERENCES q, r REFERENCES p);
      INSERT INTO c VALUES ('a', 1, 'x', 2), ('b', 1, 'x', 2)
      """, code: .foreignKeysBroken,
      saying: "6 references lead to missing rows: 4 from \"c\" to \"p\", 2 from \"c\" to \"q\".")
  }

  @Test func aRefusedStoreIsLeftAsItWas() throws {
    let path = scratch.path + "/refused.db"
    try Program(path).run("CREATE TABLE t (k TEXT PRIMARY KEY); CREATE TABLE loose (a)")
    let before = try Program(path).rows("SELECT * FROM sqlite_schema")
    #expect(throws: StoreError.self) {
      try LocalStore.create(
        at: path, binding: scratch.binding("x"), configuration: StoreConfiguration())
    }
    #expect(try Program(path).rows("SELECT * FROM sqlite_schema") == before)
  }

  @Test func excludedTablesAndVirtualTablesStayBehind() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (k TEXT PRIMARY KEY); CREATE TABLE cache (a);
      CREATE VIRTUAL TABLE words USING fts5(body);
      CREATE VIRTUAL TABLE places USING rtree(id, x0, x1);
      CREATE VIEW v AS SELECT * FROM t;
      """, configuration: AppTriggerTests.excluding("cache"))
    try devices[0].run(
      """
      INSERT INTO t VALUES ('a'); INSERT INTO cache VALUES (1); INSERT INTO words VALUES ('w');
      INSERT INTO places VALUES (1, 0, 1);
      """)
    #expect(try devices[0].changes().map(\.table) == ["t"])
    let status = try devices[0].store.status()
    #expect(status.tables.map(\.name) == ["t"])
    #expect(status.leftOut["cache"] == .excluded && status.leftOut["places"] == .virtualTable)
    #expect(status.leftOut["words_data"] == .virtualTablePart)
    try converge(devices, "SELECT * FROM v", ["a"])
    #expect(try devices[1].rows("SELECT * FROM cache") == [])
  }

  /// A program has the module; docsync does not. The module of sqlite-vec names some of its tables as
  /// no shadow tables in any case.
  @Test func partsOfVirtualTablesOfAnUnknownModuleStayBehind() throws {
    let parts = [
      "vec_chunks", "vec_rowids", "vec_info", "vec_auxiliary", "Vec_vector_chunks00",
      "vec_metadatachunks01", "vec_metadatatext15",
    ]
    let others = ["vec_rowids2", "vec_vector_chunks0", "vec_vector_chunksab", "vector_info"]
    let module = """
      PRAGMA writable_schema = ON;
      INSERT INTO sqlite_schema VALUES ('table', 'VEC', 'VEC', 0,
        'CREATE VIRTUAL TABLE VEC USING "vec0"(v float[2])');
      PRAGMA writable_schema = RESET;
      """
    let devices = try scratch.devices(
      2,
      (parts + others).map { "CREATE TABLE \($0) (id INTEGER PRIMARY KEY, v);" }.joined()
        + module, configuration: AppTriggerTests.excluding("vec_info"))
    for name in parts + others { try devices[0].run("INSERT INTO \(name) VALUES (1, 2)") }
    #expect(
      try devices[0].changes().map(\.table).sorted() == others.map { SQLName($0) }.sorted())
    let status = try devices[0].store.status()
    for part in parts {
      // What is excluded does not get into whole stores.
      #expect(
        status.leftOut[SQLName(part)] == (part == "vec_info" ? .excluded : .virtualTablePart))
    }
    #expect(status.leftOut["VEC"] == .virtualTable)
  }
}

extension RowIdentityTests {
  @Test func aRowThatGivesUpAUniqueValueKeepsItsKey() throws {
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE seat (id INTEGER PRIMARY KEY, place INTEGER UNIQUE);
      INSERT INTO seat VALUES (4, 4), (5, 9);
      """)
    // A new row under the key and with the place of one that lives on.
    try devices[0].run("DELETE FROM seat WHERE id = 5")
    _ = try devices[0].store.seal()
    try devices[0].run("INSERT INTO seat (place) VALUES (9)")
    try devices[1].setClock(offset: 3_600)
    try devices[1].run("REPLACE INTO seat VALUES (5, 0)")
    try devices[2].receive(from: devices[0], devices[1])
    try converge(devices, "SELECT place FROM seat ORDER BY place", ["0", "4", "9"])
  }

  /// With foreign keys off a reference is left behind where the key of its row changes, and sealing
  /// has it follow. The row that is parked holds the new key, of which no row was then.
  @Test(arguments: [
    "UPDATE place SET id = 5 WHERE id = 4",
    "UPDATE place SET id = 99 WHERE id = 4; UPDATE place SET id = 5 WHERE id = 99",
  ])
  func aReferenceFollowsItsRowToAKeyThatIsAPlainValueElsewhere(change: String) throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["place": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE shop (place INTEGER PRIMARY KEY REFERENCES place ON DELETE RESTRICT);
      CREATE TABLE visit (id INTEGER PRIMARY KEY, place INTEGER REFERENCES place);
      """, configuration: configuration)
    let program = try Program(devices[0].path, foreignKeys: false)
    try program.run(
      """
      INSERT INTO shop VALUES (5); INSERT INTO visit VALUES (1, 4);
      INSERT INTO place VALUES (4, 'Rome');
      """)
    try exchange(devices)
    try program.run(change)
    try converge(
      devices, "SELECT name FROM visit JOIN place ON place.id = visit.place", ["Rome"])
    #expect(try devices[0].rows("SELECT place FROM visit") == ["5"])
  }
}
