import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Numbers in columns that stand for keys, of rows that get such a key or go
/// with the same edits.
@Suite struct PlainValueTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func devices(_ kind: Int) throws -> [Device] {
    try devicesWithoutKinds(
      "INSERT INTO kind VALUES (7, 'seven'); INSERT INTO thing VALUES ('t', \(kind));")
  }

  private func devicesWithoutKinds(_ rows: String = "") throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.references = ["thing": ["kind": "kind"]]
    return try scratch.devices(
      2,
      """
      CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE thing (id TEXT PRIMARY KEY, kind INTEGER);
      CREATE TABLE part (id TEXT PRIMARY KEY, thing TEXT REFERENCES thing);
      \(rows)
      """, configuration: configuration)
  }

  /// A part that is added meanwhile brings the deleted thing back, with what it
  /// held.
  @Test func aDeletedRowHeldNoReferenceToARowThatGotTheKeySince() throws {
    let devices = try devices(6)
    try devices[0].run("INSERT INTO part VALUES ('p', 't')")
    try devices[1].run("BEGIN; INSERT INTO kind VALUES (6, 'six'); DELETE FROM thing; COMMIT")
    try converge(devices, "SELECT kind FROM thing", ["6"])
    // Another key than the plain value, where that is shown.
    #expect(try devices[0].rows("SELECT count(*) FROM kind WHERE id = 6") == ["0"])
    #expect(try devices[0].rows("SELECT name FROM kind ORDER BY 1") == ["seven", "six"])
  }

  @Test func aDeletedRowHeldAReferenceThatWasSetAfterTheRowGotItsKey() throws {
    let devices = try devices(6)
    try devices[0].run("INSERT INTO part VALUES ('p', 't')")
    try devices[1].run(
      "BEGIN; INSERT INTO kind VALUES (8, 'eight'); UPDATE thing SET kind = 8; "
        + "DELETE FROM thing; COMMIT")
    try converge(devices, "SELECT name FROM thing JOIN kind ON kind.id = kind", ["eight"])
  }

  /// The number 7 was a plain value of another row once. That of this row leads
  /// to the row with that key, also where REPLACE has written it again.
  @Test(arguments: [
    "REPLACE INTO kind VALUES (7, 'again')",
    "DELETE FROM kind; INSERT INTO kind VALUES (7, 'again')",
  ])
  func aReferenceStaysOneWhereItsRowIsWrittenAgain(edit: String) throws {
    let devices = try devices(7)
    try devices[1].run("DELETE FROM kind; INSERT INTO thing VALUES ('plain', 7)")
    try devices[1].run("UPDATE thing SET kind = NULL WHERE id = 'plain'")
    try converge(devices)
    try devices[1].run("INSERT INTO kind VALUES (7, 'seven'); UPDATE thing SET kind = 7")
    try converge(devices)
    try devices[1].run(edit)
    try converge(devices, "SELECT count(*) FROM thing JOIN kind ON kind.id = kind", ["2"])
  }

  /// The same where the first rows came after syncing began, and the log has only the insertion by
  /// REPLACE. The number was a plain value of one row and stays that.
  @Test(arguments: ["", "; DELETE FROM thing"])
  func aReferenceStaysOneWhereItsRowIsReplaced(deletion: String) throws {
    let devices = try devicesWithoutKinds()
    try devices[0].run("INSERT INTO thing VALUES ('plain', 7)")
    try converge(devices)
    try devices[0].run("INSERT INTO kind VALUES (7, 'seven'); INSERT INTO thing VALUES ('t', 7)")
    try converge(devices)
    try devices[1].run("INSERT INTO part VALUES ('p', 't'), ('q', 'plain')")
    try devices[0].run(
      "REPLACE INTO kind VALUES (7, 'again')\(deletion)")
    try converge(devices)
    #expect(
      try devices[1].rows(
        "SELECT thing.id, name FROM thing LEFT JOIN kind ON kind.id = kind ORDER BY 1")
        == ["plain|NULL", "t|again"])
  }

  /// A row that REPLACE has written again goes by the same edits, and with it what referred to it.
  @Test func aReferenceStaysOneWhereItsRowIsReplacedAndGoes() throws {
    let devices = try devicesWithoutKinds()
    try devices[0].run("INSERT INTO thing VALUES ('plain', 7)")
    try converge(devices)
    try devices[0].run("INSERT INTO kind VALUES (7, 'seven'); INSERT INTO thing VALUES ('t', 7)")
    try converge(devices)
    try devices[1].run("INSERT INTO part VALUES ('p', 't'), ('q', 'plain')")
    try devices[0].run("REPLACE INTO kind VALUES (7, 'again'); DELETE FROM kind; DELETE FROM thing")
    try converge(devices, "SELECT id, kind FROM thing ORDER BY 1", ["plain|7", "t|NULL"])
  }

  /// Nothing is said of the row, and so the number leads to none.
  @Test func theKeyOfARowThatCameAndWentIsAPlainValue() throws {
    let devices = try devices(7)
    try devices[1].run("UPDATE thing SET kind = 9")
    try devices[1].run("INSERT INTO kind VALUES (9, 'nine'); DELETE FROM kind WHERE id = 9")
    try converge(devices, "SELECT kind FROM thing", ["9"])
  }

  /// A house has the number 6 on all of them, and can have one used room.
  private func devicesWithOneUsedRoom(_ count: Int) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.references = ["room": ["house": "house"]]
    return try scratch.devices(
      count,
      """
      CREATE TABLE house (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE room (id TEXT PRIMARY KEY, house INTEGER, used INTEGER);
      CREATE UNIQUE INDEX one_room ON room (house) WHERE used = 1;
      INSERT INTO house VALUES (6, 'six');
      """, configuration: configuration)
  }

  /// A row of this device has the number 6, and a plain 6 is another value all the same, also where
  /// SQLite evaluates the index.
  @Test func aPlainValueAndAReferenceAreTwoClaimsOfAPartialIndex() throws {
    let device = try devicesWithOneUsedRoom(1)[0]
    try device.store.write { session in
      let room = try #require(session.schema.tables.first { $0.name == "room" })
      let column = try #require(room.columns.firstIndex { $0.name == "house" })
      let set = WorkingSet(session: session)
      let text = try #require(room.columns.firstIndex { $0.name == "id" })
      let used = try #require(room.columns.firstIndex { $0.name == "used" })
      let house = try session.exported(.integer(6), room.columns[column])
      #expect(house != .integer(6))
      let claims = try [house, .integer(6)].map { value in
        var row: [Value?] = Array(repeating: nil, count: room.columns.count)
        row[text] = .text("a")
        row[column] = value
        row[used] = .integer(1)
        return try set.claims(in: room, row)
      }
      #expect(claims.map(\.count) == [1, 1])
      #expect(claims[0] != claims[1])
    }
  }

  /// Builds that noted version 1 noted a claim with the number by which this device knows the row.
  @Test func claimsAreNotedAgainThatEarlierBuildsNotedByLocalKeys() throws {
    let devices = try devicesWithOneUsedRoom(2)
    try devices[0].run("INSERT INTO room VALUES ('a', 6, 1)")
    try devices[1].setClock(offset: 3_600)
    try devices[1].run("INSERT INTO room VALUES ('b', 6, 1)")
    try converge(devices, "SELECT id FROM room", ["b"])
    let claim = "SELECT hex(key) FROM docsync_claim"
    let noted = try devices[0].rows(claim)
    #expect(noted.count == 1)
    let device = try devices[0].changed(isOpen: false) { try noteAsBefore($0.program) }
    #expect(try device.rows(claim) != noted)
    #expect(try device.sealsNothing())
    #expect(try device.rows(claim) == noted)
    #expect(try LocalStore.verify(at: device.path).report.findings == [])
  }

  /// Likewise if the claims come with the whole store of such a build.
  @Test func claimsInTheWholeStoreOfAnEarlierBuildAreNotedAgain() throws {
    let devices = try devicesWithOneUsedRoom(3)
    try devices[0].run("INSERT INTO room VALUES ('a', 6, 1)")
    try devices[1].setClock(offset: 3_600)
    try devices[1].run("INSERT INTO room VALUES ('b', 6, 1)")
    try converge(Array(devices.prefix(2)), "SELECT id FROM room", ["b"])
    let path = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: path)
    try noteAsBefore(Program(path))
    _ = try devices[2].store.replaceContent(withSnapshotAt: path)
    #expect(try devices[2].sealsNothing())
    let claim = "SELECT hex(key) FROM docsync_claim"
    #expect(try devices[2].rows(claim) == devices[0].rows(claim))
    #expect(try LocalStore.verify(at: devices[2].path).report.findings == [])
  }

  /// Makes a store with one hidden room what a build would have made of it that noted version 1.
  private func noteAsBefore(_ program: Program) throws {
    let claim = IdentityEncoding.encode([.integer(6)]).bytes.map { String(format: "%02x", $0) }
    try program.run("UPDATE docsync_claim SET key = x'\(claim.joined())'")
    try program.run("UPDATE docsync_meta SET value = x'01' WHERE key = 'plainValues'")
  }

  /// Rooms are known by their buildings, keys by their rooms; no building is
  /// there.
  @Test func aPlainValueInAnIdentityIsOneBeforeTheEditsToo() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["room": ["building": "building"]]
    configuration.identities = ["building": .columns(["name"]), "room": .columns(["building"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE building (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE room (id INTEGER PRIMARY KEY, building INTEGER NOT NULL UNIQUE);
      CREATE TABLE key (id INTEGER PRIMARY KEY REFERENCES room, text);
      INSERT INTO room VALUES (1, 6), (2, 7); INSERT INTO key VALUES (2, 'k');
      """, configuration: configuration)
    try devices[0].run("UPDATE key SET id = 1")
    try converge(
      devices, "SELECT building, text FROM key JOIN room ON room.id = key.id", ["6|k"])
  }

  /// The default leads to no row that is known by a name.
  @Test func aPlainValueInAReferenceWithADefaultIsHidden() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE note (id INTEGER PRIMARY KEY, text, tag INTEGER DEFAULT 1 REFERENCES tag ON DELETE SET DEFAULT);
      """, configuration: configuration)
    try devices[0].run("PRAGMA foreign_keys = OFF; INSERT INTO note (text, tag) VALUES ('n', 3)")
    try converge(devices, "SELECT count(*) FROM note", ["0"])
    #expect(try devices[0].store.status().parked.map(\.reason) == [.parentMissing])
  }

  /// Houses are known by their names; rooms refer to them, and lamps to rooms.
  private func devicesWithRooms(_ rows: String) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.references = ["room": ["house": "house"]]
    configuration.identities = ["house": .columns(["name"])]
    return try scratch.devices(
      2,
      """
      CREATE TABLE house (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE room (id INTEGER PRIMARY KEY, house INTEGER);
      CREATE TABLE lamp (id TEXT PRIMARY KEY, room INTEGER REFERENCES room);
      \(rows)
      """, configuration: configuration)
  }

  /// The house that gets the number is known by its name, and had another one.
  @Test func aDeletedRowHeldNoReferenceToARowThatChangedItsKeySince() throws {
    let devices = try devicesWithRooms(
      "INSERT INTO house VALUES (3, 'h'); INSERT INTO room VALUES (2, 6);")
    try devices[0].run("INSERT INTO lamp VALUES ('l', 2)")
    try devices[1].run("UPDATE house SET id = 6; DELETE FROM room")
    try converge(devices, "SELECT house FROM room", ["6"])
    #expect(try devices[0].rows("SELECT id FROM house") == ["3"])
  }

  /// The house came by the number within the edits, and has another one after them.
  @Test(arguments: ["", "DELETE FROM room"])
  func aPlainValueDoesNotFollowARowThatHadItForAWhile(edit: String) throws {
    let devices = try devicesWithRooms("INSERT INTO room VALUES (2, 6);")
    try devices[0].run("INSERT INTO lamp VALUES ('l', 2)")
    try devices[1].run(
      "INSERT INTO house VALUES (5, 'h'); REPLACE INTO house (name) VALUES ('h'), ('h'); \(edit)")
    #expect(try devices[1].rows("SELECT id FROM house") == ["7"])
    try converge(devices, "SELECT house FROM room", ["6"])
  }

  /// A house moves to the number and goes, by edits that are sealed together: the plain value, which
  /// none of them has written, was never a reference to it. The number may pass to another house, and
  /// a room may be deleted and come back.
  @Test(arguments: ["", "DELETE FROM room", "INSERT INTO house VALUES (6, 'g')"])
  func aPlainValueIsNoReferenceToARowThatMovedToItsNumberAndWent(edit: String) throws {
    let devices = try devicesWithRooms(
      "INSERT INTO house VALUES (3, 'h'); INSERT INTO room VALUES (2, 6);")
    try devices[0].run("INSERT INTO lamp VALUES ('l', 2)")
    try devices[1].run("UPDATE house SET id = 6; DELETE FROM house; \(edit)")
    try converge(devices, "SELECT house FROM room", ["6"])
    #expect(try devices[0].rows("SELECT count(*) FROM house WHERE id = 6") == ["0"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
  }

  /// A room that got the number while the house had it referred to the house.
  @Test func aReferenceToARowThatMovedAndWentIsNoPlainValue() throws {
    let devices = try devicesWithRooms(
      "INSERT INTO house VALUES (3, 'h'); INSERT INTO room VALUES (2, 6);")
    try devices[1].run(
      "UPDATE house SET id = 6; INSERT INTO room VALUES (5, 6); DELETE FROM house")
    try converge(devices, "SELECT id, house FROM room ORDER BY 1", ["2|6", "5|NULL"])
  }

  /// A house got the number, and gets another one later: the room of it follows, and the plain value
  /// stays, also where that is edited to be what it was.
  @Test(arguments: ["", "UPDATE room SET house = NULL; UPDATE room SET house = 6"])
  func aPlainValueDoesNotFollowARowThatTookItsNumber(edit: String) throws {
    let devices = try devicesWithRooms("INSERT INTO room VALUES (2, 6);")
    try devices[1].run("INSERT INTO house VALUES (6, 'h')")
    try devices[1].run("INSERT INTO room VALUES (3, 6)")
    try converge(devices, "SELECT count(*) FROM room", ["2"])
    try devices[1].run("\(edit); UPDATE house SET id = 9 WHERE name = 'h'")
    #expect(try devices[1].sealsNothing() == edit.isEmpty)
    #expect(
      try devices[1].rows("SELECT house FROM room ORDER BY id") == [edit.isEmpty ? "6" : "9", "9"])
    try converge(
      devices, "SELECT name FROM room LEFT JOIN house ON house.id = house ORDER BY room.id",
      [edit.isEmpty ? "NULL" : "h", "h"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// A house has the number of a plain value, and gets another name: that is an edit of its room
  /// alone, also where the house is new.
  @Test(arguments: [true, false])
  func aPlainValueStaysOneWhereTheRowWithItsNumberIsRenamed(isSealed: Bool) throws {
    let devices = try devicesWithRooms("INSERT INTO room VALUES (2, 6);")
    try devices[1].run("INSERT INTO house VALUES (6, 'h'); INSERT INTO room VALUES (3, 6)")
    if isSealed { try converge(devices) }
    try devices[1].run("UPDATE house SET name = 'g'")
    try converge(devices)
    try devices[1].run("UPDATE house SET id = 9")
    try converge(
      devices, "SELECT name FROM room LEFT JOIN house ON house.id = house ORDER BY room.id",
      ["NULL", "g"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// A house gets a number that another room holds as a plain value: the room of it follows, and
  /// goes on to refer to it.
  @Test(arguments: ["", "UPDATE house SET id = 99"])
  func aReferenceFollowsToANumberThatIsAPlainValueElsewhere(edit: String) throws {
    let devices = try devicesWithRooms(
      "INSERT INTO house VALUES (3, 'h'); INSERT INTO room VALUES (2, 6), (4, 3);")
    try devices[1].run("\(edit); UPDATE house SET id = 6")
    try converge(devices)
    #expect(try devices[1].rows("SELECT id, house FROM room") == ["2|6", "4|6"])
    try devices[1].run("UPDATE house SET id = 9")
    try converge(
      devices, "SELECT room.id, name FROM room LEFT JOIN house ON house.id = house ORDER BY 1",
      ["2|NULL", "4|h"])
  }

  /// Who adds a part to a thing that others have deleted says all of the thing, and six is not the
  /// kind that has that number here.
  @Test func aPlainValueIsOneInARowThatLivesAgain() throws {
    let devices = try devices(6)
    try devices[0].run("INSERT INTO kind VALUES (6, 'six'); INSERT INTO part VALUES ('p', 't')")
    try devices[1].run("DELETE FROM thing")
    try converge(devices, "SELECT kind FROM thing", ["6"])
    try devices[0].run("INSERT INTO part VALUES ('q', 't')")
    try converge(devices, "SELECT kind FROM thing", ["6"])
    #expect(try devices[1].rows("SELECT count(*) FROM kind WHERE id = 6") == ["0"])
  }

  /// The number of a book that is gone, in the key of a label, is not that book.
  @Test func aRowWithTheNumberOfOneThatWentIsNoneThatReferredToIt() throws {
    var configuration = StoreConfiguration()
    configuration.tableMergeTypes = ["label": .editWins]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE label (book INTEGER REFERENCES book ON DELETE CASCADE,
        tag INTEGER REFERENCES tag ON UPDATE CASCADE, note TEXT, PRIMARY KEY (book, tag));
      INSERT INTO book VALUES (1, 'one'), (2, 'two'); INSERT INTO tag VALUES (1, 'red'), (2, 'blue');
      INSERT INTO label VALUES (2, 2, 'a'), (1, 2, 'b');
      """, configuration: configuration)
    try devices[0].run(
      "PRAGMA foreign_keys = OFF; DELETE FROM book WHERE id = 2; UPDATE label SET note = NULL")
    try devices[1].run("UPDATE tag SET id = 6 WHERE id = 2")
    _ = try devices[1].receive(from: devices[0])
    try devices[1].run("PRAGMA foreign_keys = OFF; INSERT INTO label VALUES (2, 6, 'c')")
    try converge(devices)
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// A column that others refer through has the number of a kind that went, beside a NULL
  /// with which the foreign key holds for no row.
  @Test func theNumberOfARowThatWentIsNoneBesideNull() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["kind": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE part (kind INTEGER REFERENCES kind, n INTEGER, PRIMARY KEY (kind, n));
      CREATE TABLE use (id INTEGER PRIMARY KEY, kind INTEGER, n INTEGER,
        FOREIGN KEY (kind, n) REFERENCES part);
      """, configuration: configuration)
    try devices[0].run("INSERT INTO kind VALUES (4, 'four')")
    try converge(devices)
    try devices[0].run(
      "DELETE FROM kind; INSERT INTO use (kind) VALUES (4); INSERT INTO use (kind) VALUES (7)")
    try converge(devices, "SELECT kind, n FROM use ORDER BY id", ["NULL|NULL", "7|NULL"])
  }

  /// A row that is shown under the key of another one, since what it refers to lost a unique value,
  /// becomes that when it is edited: with that key as it is written.
  @Test func anEditedRowHasTheKeyUnderWhichItIsShown() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE kind (k PRIMARY KEY, name UNIQUE);
      CREATE TABLE thing (k PRIMARY KEY REFERENCES kind, a, b);
      """)
    try devices[0].setClock(offset: -100)
    try devices[0].run(
      "INSERT INTO kind VALUES ('1', 'n'); INSERT INTO thing VALUES ('1', 'a', 'b')")
    try devices[1].run("INSERT INTO kind VALUES (x'31', 'n')")
    try converge(devices, "SELECT quote(k), a, b FROM thing", ["X'31'|a|b"])
    try devices[1].run("UPDATE thing SET a = 'edited'")
    let changes = try #require(try devices[1].changes(after: 1).first)
    let key = try #require(changes.columns.firstIndex(of: "k"))
    #expect(changes.letters == "i")
    #expect(changes.cells[key][0] == .blob([0x31]))
    try converge(devices, "SELECT quote(k), a, b FROM thing", ["X'31'|edited|b"])
    // The kind that had lost its name gets another one.
    try devices[0].run("INSERT INTO kind VALUES ('1', 'm')")
    try converge(
      devices, "SELECT quote(k), a, b FROM thing ORDER BY 1", ["'1'|a|b", "X'31'|edited|b"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// A tag from before syncing lost its name, and its number is a plain value: what a join row refers
  /// to that goes is the tag all the same.
  @Test func aJoinRowThatIsShownWithAStandInGoesForGood() throws {
    let devices = try scratch.devices(
      3,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE label (note INTEGER, tag INTEGER REFERENCES tag, PRIMARY KEY (note, tag));
      INSERT INTO tag VALUES (2, NULL), (5, NULL);
      """)
    for (index, device) in devices.enumerated() {
      try device.setClock(offset: Double(50 * index - 100))
    }
    try devices[0].run("UPDATE tag SET name = 'red' WHERE id = 5; INSERT INTO label VALUES (1, 5)")
    try devices[1].run("INSERT INTO tag (name) VALUES ('red')")
    try converge(devices, "SELECT note, name FROM label JOIN tag ON tag = id", ["1|red"])
    try devices[2].run("DELETE FROM label")
    try converge(devices, "SELECT count(*) FROM label", ["0"])
  }

  /// A row with declared columns gets a number that a reference held as a plain value, and is edited
  /// by an upsert before the next sealing.
  @Test func aPlainValueStaysOneWhereAnInsertedRowIsUpserted() throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["tag": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, weight INTEGER);
      CREATE TABLE label (tag INTEGER REFERENCES tag, note INTEGER, PRIMARY KEY (tag, note));
      CREATE TABLE mark (title TEXT PRIMARY KEY, tag INTEGER, note INTEGER,
        FOREIGN KEY (tag, note) REFERENCES label);
      """, configuration: configuration)
    try devices[0].run("INSERT INTO mark VALUES ('a', 4, NULL)")
    try converge(devices)
    try devices[0].run(
      """
      INSERT INTO tag VALUES (4, 'red', 1);
      INSERT INTO tag (name, weight) VALUES ('red', 2)
        ON CONFLICT DO UPDATE SET weight = excluded.weight;
      """)
    try converge(devices, "SELECT name, weight FROM tag", ["red|2"])
    try converge(devices, "SELECT title, tag FROM mark", ["a|4"])
  }

  /// Kinds that are known by names, parts of them, and what refers to a part, whose number of a
  /// kind must be unique.
  private func users(_ rows: String = "") throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.identities = ["kind": .columns(["name"])]
    return try scratch.devices(
      2,
      """
      CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE part (kind INTEGER REFERENCES kind, n INTEGER, PRIMARY KEY (kind, n));
      CREATE TABLE use (id TEXT PRIMARY KEY, kind INTEGER UNIQUE, n INTEGER,
        FOREIGN KEY (kind, n) REFERENCES part);
      \(rows)
      """, configuration: configuration)
  }

  /// A kind came and went under a number that a row held before: also where another had its name
  /// before, under another number.
  @Test(arguments: ["", "INSERT INTO kind VALUES (1, 'red');"])
  func theNumberOfANamedRowThatCameAndWentIsAPlainValue(rows: String) throws {
    let devices = try users(rows)
    try devices[0].run("INSERT INTO use (id, kind) VALUES ('a', 5)")
    try converge(devices)
    try devices[0].run(
      """
      DELETE FROM kind; INSERT INTO kind VALUES (5, 'red'); DELETE FROM kind;
      INSERT INTO kind VALUES (7, 'green'); DELETE FROM kind;
      INSERT INTO use (id, kind) VALUES ('b', 7);
      INSERT INTO kind VALUES (6, 'blue')
      """)
    try converge(devices, "SELECT kind FROM use ORDER BY id", ["5", "7"])
    try converge(devices, "SELECT name FROM kind", ["blue"])
  }

  /// Kinds and a plain value come together: no kind gets the value for its number.
  @Test func aRowGetsNoNumberThatComesAsAPlainValue() throws {
    let devices = try users()
    try devices[0].run(
      """
      INSERT INTO use (id, kind) VALUES ('a', 2), ('b', 5);
      INSERT INTO kind VALUES (3, 'blue'), (4, 'green'), (5, 'red')
      """)
    try converge(
      devices, "SELECT use.id, name FROM use LEFT JOIN kind ON kind.id = kind ORDER BY 1",
      ["a|NULL", "b|red"])
  }

  /// A row whose kind is gone gives up the number that another row has then.
  @Test func aRowTakesTheNumberOfAKindThatIsGone() throws {
    let devices = try users(
      "INSERT INTO kind VALUES (1, 'red'); INSERT INTO use VALUES ('b', 1, NULL);")
    try devices[0].run("DELETE FROM kind")
    _ = try devices[0].store.seal()
    try devices[0].run("INSERT INTO use VALUES ('a', 1, NULL)")
    try converge(devices, "SELECT id, kind FROM use ORDER BY id", ["a|1", "b|NULL"])
  }
}
