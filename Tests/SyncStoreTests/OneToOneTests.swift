import SyncModel
import Testing

@testable import SyncStore

/// Tables whose integer key is a reference itself: their rows are known by the
/// rows that they refer to.
@Suite struct OneToOneTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  static let places = """
    CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE restaurant (place_id INTEGER PRIMARY KEY
      REFERENCES place (id) ON DELETE CASCADE ON UPDATE CASCADE, kitchen TEXT);
    CREATE TABLE pizzeria (restaurant_id INTEGER PRIMARY KEY
      REFERENCES restaurant ON DELETE CASCADE ON UPDATE CASCADE, oven TEXT);
    CREATE TABLE waiter (id INTEGER PRIMARY KEY, name TEXT,
      restaurant INTEGER REFERENCES restaurant (place_id) ON DELETE CASCADE ON UPDATE CASCADE);
    """

  static let query = """
    SELECT p.name, r.kitchen, z.oven, w.name FROM place AS p LEFT JOIN restaurant AS r ON place_id = p.id
      LEFT JOIN pizzeria AS z ON restaurant_id = place_id LEFT JOIN waiter AS w ON w.restaurant = place_id
      ORDER BY 1, 2, 3, 4
    """

  private func expect(
    _ devices: [Device], _ rows: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for _ in 0..<2 {
      for device in devices {
        for other in devices where other !== device { try device.receive(from: other) }
      }
    }
    for device in devices {
      #expect(try device.rows(Self.query) == rows, sourceLocation: sourceLocation)
      try device.checkIntegrity()
      #expect(
        try LocalStore.verify(at: device.path).report.findings == [], sourceLocation: sourceLocation
      )
    }
    #expect(
      Set(try devices.map { try $0.store.digest() }).count == 1, sourceLocation: sourceLocation)
  }

  @Test func rowsStayBesideTheRowsThatTheyReferTo() throws {
    let devices = try scratch.devices(
      2,
      Self.places
        + "INSERT INTO place VALUES (1, 'shared'); INSERT INTO restaurant VALUES (1, 'old')")
    // The numbers of places and of restaurants part.
    try devices[0].run(
      """
      INSERT INTO place VALUES (2, 'a2'), (3, 'a3'), (4, 'a4');
      INSERT INTO restaurant VALUES (4, 'ka4'), (2, 'ka2');
      INSERT INTO pizzeria VALUES (4, 'oa4'); INSERT INTO waiter (name, restaurant) VALUES ('wa4', 4);
      """)
    try devices[1].run(
      """
      INSERT INTO place VALUES (2, 'b2'), (3, 'b3');
      INSERT INTO restaurant VALUES (3, 'kb3'); INSERT INTO pizzeria VALUES (3, 'ob3'), (1, 'both');
      INSERT INTO waiter (name, restaurant) VALUES ('wb3', 3);
      """)
    try expect(
      devices,
      [
        "a2|ka2|NULL|NULL", "a3|NULL|NULL|NULL", "a4|ka4|oa4|wa4", "b2|NULL|NULL|NULL",
        "b3|kb3|ob3|wb3", "shared|old|both|NULL",
      ])
    // Edits of the other's rows, a changed number, and a row that goes with its parent.
    try devices[1].run(
      """
      UPDATE restaurant SET kitchen = 'new' WHERE place_id = (SELECT id FROM place WHERE name = 'a4');
      UPDATE place SET id = 77 WHERE name = 'b3';
      """)
    try devices[0].run("DELETE FROM place WHERE name = 'a2'")
    try expect(
      devices,
      [
        "a3|NULL|NULL|NULL", "a4|new|oa4|wa4", "b2|NULL|NULL|NULL", "b3|kb3|ob3|wb3",
        "shared|old|both|NULL",
      ])
    try devices[0].run("DELETE FROM place WHERE name IN ('a4', 'shared')")
    try expect(devices, ["a3|NULL|NULL|NULL", "b2|NULL|NULL|NULL", "b3|kb3|ob3|wb3"])
  }

  @Test func aKeyThatLeadsBackToItselfNamesItsRows() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE node (id INTEGER PRIMARY KEY REFERENCES node (id), text);
      CREATE TABLE left (id INTEGER PRIMARY KEY REFERENCES "right" (id) DEFERRABLE INITIALLY DEFERRED, l);
      CREATE TABLE "right" (id INTEGER PRIMARY KEY REFERENCES left (id) DEFERRABLE INITIALLY DEFERRED, r);
      """)
    for (number, device) in devices.enumerated() {
      try device.run(
        """
        INSERT INTO node VALUES (1, 'n\(number)');
        BEGIN; INSERT INTO left VALUES (1, 'l\(number)'); INSERT INTO "right" VALUES (1, 'r\(number)'); COMMIT
        """)
    }
    for _ in 0..<2 {
      try devices[0].receive(from: devices[1])
      try devices[1].receive(from: devices[0])
    }
    for device in devices {
      #expect(try device.rows("SELECT text FROM node ORDER BY 1") == ["n0", "n1"])
      #expect(
        try device.rows("SELECT l, r FROM left JOIN \"right\" USING (id) ORDER BY 1")
          == ["l0|r0", "l1|r1"])
      try device.checkIntegrity()
    }
    #expect(try devices[0].store.digest() == devices[1].store.digest())
  }

  @Test(arguments: [
    (
      "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (id INTEGER PRIMARY KEY REFERENCES p)",
      "primaryKey"
    ),
    (
      "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY REFERENCES p)",
      "primaryKey"
    ),
    (
      "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (id INTEGER PRIMARY KEY)",
      "surrogate"
    ),
    (
      "CREATE TABLE p (id INTEGER PRIMARY KEY, code INTEGER UNIQUE); CREATE TABLE c (id INTEGER PRIMARY KEY REFERENCES p (code))",
      "primaryKey"
    ),
    (
      "CREATE TABLE p (id INTEGER PRIMARY KEY, t NOT NULL, UNIQUE (t, id)); CREATE TABLE c (id INTEGER PRIMARY KEY, t NOT NULL, FOREIGN KEY (t, id) REFERENCES p (t, id))",
      "primaryKey"
    ),
    // It may refer to nothing.
    (
      "CREATE TABLE p (id INTEGER PRIMARY KEY, t, UNIQUE (t, id)); CREATE TABLE c (id INTEGER PRIMARY KEY, t, FOREIGN KEY (t, id) REFERENCES p (t, id))",
      "surrogate"
    ),
    ("CREATE TABLE c (id INTEGER PRIMARY KEY REFERENCES c)", "surrogate"),
  ]) func theKindOfKeyDecides(sql: String, identity: String) throws {
    let path = scratch.path + "/plan.db"
    try Program(path).run(sql)
    let plan = try LocalStore.plan(at: path, configuration: StoreConfiguration())
    #expect(plan.tables.first { $0.name == "c" }.map { "\($0.identity)" } == identity)
  }

  @Test func declaredReferencesCountToo() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["c": ["id": "p"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, name); CREATE TABLE c (id INTEGER PRIMARY KEY, text);
      """, configuration: configuration)
    try devices[0].run("INSERT INTO p VALUES (1, 'a'), (2, 'aa'); INSERT INTO c VALUES (2, 'aa')")
    try devices[1].run("INSERT INTO p VALUES (1, 'b'), (2, 'bb'); INSERT INTO c VALUES (2, 'bb')")
    for _ in 0..<2 {
      try devices[0].receive(from: devices[1])
      try devices[1].receive(from: devices[0])
    }
    for device in devices {
      #expect(
        try device.rows("SELECT name, text FROM p JOIN c USING (id) ORDER BY 1") == [
          "aa|aa", "bb|bb",
        ])
    }
  }

  @Test(arguments: [StoreConfiguration.Identity.surrogate, .columns(["kitchen"])])
  func identitiesOfTheirOwnAreRefused(identity: StoreConfiguration.Identity) throws {
    let path = scratch.path + "/plan.db"
    try Program(path).run(Self.places + "CREATE UNIQUE INDEX kitchens ON restaurant (kitchen)")
    var configuration = StoreConfiguration()
    configuration.identities = ["restaurant": identity]
    #expect { try LocalStore.plan(at: path, configuration: configuration) } throws: { error in
      (error as? StoreError)?.message.contains("refers to \"place\"") ?? false
    }
  }

  @Test func aKeyThatAConditionReadsIsRefused() throws {
    let path = scratch.path + "/plan.db"
    try Program(path).run(
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY);
      CREATE TABLE c (id INTEGER PRIMARY KEY REFERENCES p, n, CHECK (n < id));
      """)
    #expect { try LocalStore.plan(at: path, configuration: StoreConfiguration()) } throws: {
      error in
      (error as? StoreError)?.message.contains("is read by a CHECK") ?? false
    }
  }

  /// Gives a table that is registered with identities of its own the reference
  /// that an earlier version did not see.
  static func makeFormer(_ device: Device) throws {
    try device.run(
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = replace(sql, 'place_id INTEGER PRIMARY KEY',
        'place_id INTEGER PRIMARY KEY REFERENCES place (id)') WHERE name = 'restaurant';
      PRAGMA writable_schema = RESET;
      """)
  }

  @Test func aDocumentOfAnEarlierVersionIsToldApart() throws {
    let devices = try scratch.devices(
      1,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name);
      CREATE TABLE restaurant (place_id INTEGER PRIMARY KEY, kitchen);
      CREATE TABLE waiter (id INTEGER PRIMARY KEY, restaurant INTEGER REFERENCES restaurant, name);
      INSERT INTO place VALUES (1, 'p1'), (3, 'p3'); INSERT INTO restaurant VALUES (3, 'k3');
      INSERT INTO waiter VALUES (1, 3, 'w');
      """)
    let former = devices[0]
    try former.store.checkIdentities()
    let changed = try former.changed(isOpen: false) { try Self.makeFormer($0) }
    // It goes on as it was, and is not synchronized.
    try changed.run("UPDATE restaurant SET kitchen = 'k4'; INSERT INTO restaurant VALUES (1, 'k1')")
    #expect(try changed.store.seal().changeSets.count == 1)
    #expect { try changed.store.checkIdentities() } throws: { error in
      guard let error = error as? StoreError else { return false }
      return error.code == .unsupportedSchema && error.message.contains("\"restaurant\"")
        && error.remedy.actions.contains(.reset)
    }
    var binding = changed.store.binding
    binding.client = .random()
    try changed.store.beginAgain(as: binding, forgetting: [])
    try changed.store.checkIdentities()
    #expect(
      try changed.store.status().tables.first { $0.name == "restaurant" }?.identity == .primaryKey)
    #expect(try changed.store.status().incompleteNames == [])
    try changed.checkIntegrity()
    #expect(try LocalStore.verify(at: changed.path).report.findings == [])
    let snapshot = scratch.path + "/other.db"
    _ = try changed.store.snapshot(to: snapshot)
    let other = try Device(
      store: try LocalStore.adopt(snapshotAt: snapshot, binding: scratch.binding("other")),
      path: snapshot)
    try changed.run("INSERT INTO place VALUES (4, 'a'); INSERT INTO restaurant VALUES (4, 'a')")
    try other.run(
      """
      INSERT INTO place VALUES (4, 'c'), (5, 'b'); INSERT INTO restaurant VALUES (5, 'b');
      INSERT INTO waiter VALUES (2, 5, 'b')
      """)
    for _ in 0..<2 {
      try changed.receive(from: other)
      try other.receive(from: changed)
    }
    for device in [changed, other] {
      let rows = try device.rows(
        """
        SELECT p.name, kitchen, w.name FROM place AS p JOIN restaurant ON place_id = p.id
          LEFT JOIN waiter AS w ON w.restaurant = place_id ORDER BY 1
        """)
      #expect(rows == ["a|a|NULL", "b|b|b", "p1|k1|NULL", "p3|k4|w"])
    }
    #expect(try changed.store.digest() == other.store.digest())
  }

  /// A seat holds its restaurant, which would go with its place otherwise. Once the seat is gone, every
  /// device hides both.
  @Test(
    arguments: zip(
      ["place_id INTEGER PRIMARY KEY", "place_id INTEGER"], ["TEXT UNIQUE", "TEXT PRIMARY KEY"]))
  func aDeletedPlaceGoesWithTheLastRowThatHoldsItByWayOfAnother(key: String, id: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE restaurant (\(key) REFERENCES place ON DELETE CASCADE, id \(id));
      CREATE TABLE seat (n INTEGER PRIMARY KEY, restaurant TEXT REFERENCES restaurant (id));
      INSERT INTO place VALUES (1, 'a'), (2, 'b'); INSERT INTO restaurant VALUES (1, 'ra'), (2, 'rb');
      INSERT INTO seat VALUES (1, 'ra'), (2, 'rb');
      """)
    try devices[0].run("PRAGMA foreign_keys = OFF; DELETE FROM place")
    try devices[1].run(
      "DELETE FROM seat WHERE n = 1; UPDATE seat SET restaurant = NULL WHERE n = 2")
    let query = "SELECT name FROM place UNION SELECT id FROM restaurant"
    try converge(devices, query, [])
  }

  /// A restaurant keeps the second place, which is deleted. A kiosk refers to that by its number,
  /// which the other place had: it has not been edited itself.
  @Test func aRowWhoseKeyLeadsToADeletedRowHasThatLiveAgain() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["place": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE restaurant (id INTEGER PRIMARY KEY REFERENCES place ON UPDATE CASCADE);
      CREATE TABLE kiosk (id INTEGER PRIMARY KEY
        REFERENCES place ON DELETE CASCADE ON UPDATE CASCADE);
      INSERT INTO place VALUES (1, 'a'), (2, 'b'); INSERT INTO kiosk VALUES (1);
      """, configuration: configuration)
    try devices[0].run("DELETE FROM place WHERE name = 'b'")
    try devices[1].run("INSERT INTO restaurant VALUES (2)")
    let query = "SELECT name FROM place JOIN kiosk ON kiosk.id = place.id"
    try converge(devices, query, ["a"])
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF; BEGIN;
      UPDATE place SET id = 99 WHERE name = 'a'; UPDATE place SET id = 1 WHERE name = 'b'; COMMIT;
      """)
    try devices[1].run("DELETE FROM restaurant")
    try converge(devices, query, ["b"])
    #expect(try devices[0].rows("SELECT name FROM place ORDER BY 1") == ["a", "b"])
  }

  /// A place is inserted, gets another name, and then another number with foreign keys off, all
  /// before it is sealed: a kiosk with its former number belongs to it. An older place may have had
  /// the name before.
  @Test(arguments: ["", "INSERT INTO place VALUES (1, 'a')"])
  func aRowFollowsANewRowThatGetsOtherDeclaredValuesAndAnotherKey(older: String) throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["place": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE kiosk (id INTEGER PRIMARY KEY REFERENCES place ON UPDATE CASCADE, size INTEGER);
      \(older);
      """, configuration: configuration)
    try devices[0].run(
      """
      UPDATE place SET name = 'c'; INSERT INTO place VALUES (2, 'a');
      UPDATE place SET name = 'b' WHERE id = 2; PRAGMA foreign_keys = OFF;
      UPDATE place SET id = 4 WHERE id = 2; INSERT INTO kiosk VALUES (2, 30);
      """)
    try converge(devices, "SELECT name, size FROM place JOIN kiosk USING (id)", ["b|30"])
  }

  /// With foreign keys off a place is deleted, and one of its name is inserted under another number,
  /// and gets another name and another number: a kiosk that is left with the first number holds the
  /// deleted place, and one with the second number is that of the place as it is now.
  @Test func aNumberOfADeletedRowAndThatOfANewOneOfTheSameNameStandForTwoRows() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["place": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE kiosk (id INTEGER PRIMARY KEY REFERENCES place ON UPDATE CASCADE, size INTEGER);
      INSERT INTO place VALUES (5, 'a');
      """, configuration: configuration)
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF; INSERT INTO kiosk VALUES (5, 50), (2, 20); DELETE FROM place;
      INSERT INTO place VALUES (2, 'a');
      UPDATE place SET name = 'b' WHERE id = 2; UPDATE place SET id = 4 WHERE id = 2;
      """)
    try converge(
      devices, "SELECT name, size FROM place JOIN kiosk USING (id) ORDER BY 1", ["a|50", "b|20"])
  }

  /// A row that waits for another one refers, by its key, to a row that is shown under the key of a
  /// third one later: it follows there.
  @Test func aRowThatWaitsFollowsOneThatIsShownUnderAnotherKey() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE person (name TEXT PRIMARY KEY);
      CREATE TABLE detail (id INTEGER PRIMARY KEY REFERENCES tag);
      CREATE TABLE note (id INTEGER PRIMARY KEY REFERENCES detail ON DELETE CASCADE,
        author TEXT REFERENCES person);
      INSERT INTO tag VALUES (6, 'b'), (7, NULL);
      """)
    try devices[1].run("INSERT INTO detail VALUES (6)")
    try devices[0].run("PRAGMA foreign_keys = OFF; INSERT INTO note VALUES (6, 'Ann')")
    try devices[1].receive(from: devices[0])
    try devices[0].run("UPDATE OR REPLACE tag SET name = 'a'")
    try converge(devices, "SELECT id FROM detail", ["7"])
    try devices[1].run("INSERT INTO person VALUES ('Ann')")
    try converge(devices, "SELECT id, author FROM note", ["7|Ann"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// A row is shown as another one, and a reference of it otherwise than it is. A new reference to it
  /// publishes the other row, with the value beneath, which the device keeps as others do.
  @Test func whatIsBeneathARowThatIsShownAsAnotherIsKept() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE item (id INTEGER PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE detail (item INTEGER PRIMARY KEY REFERENCES item,
        other INTEGER REFERENCES item ON DELETE SET NULL);
      CREATE TABLE mark (name TEXT PRIMARY KEY, detail INTEGER REFERENCES detail);
      INSERT INTO item VALUES (3, 'x');
      """)
    try devices[0].run("INSERT INTO detail VALUES (3, 3)")
    try devices[1].run("UPDATE item SET id = 6 WHERE id = 3")
    try converge(devices, "SELECT code, item = other FROM detail JOIN item ON id = item", ["x|1"])
    try devices[0].run("INSERT INTO mark SELECT 'm', item FROM detail")
    try converge(
      devices, "SELECT name, item = other FROM detail JOIN mark ON item = detail", ["m|1"])
  }
}
