import SyncModel
import Testing

@testable import SyncStore

/// Columns of a key that stand for a row without a foreign key that holds the row: the foreign keys
/// of another table share the column, or `--reference` declares it.
@Suite struct NamedKeyTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let tenants = """
    CREATE TABLE tenant (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE item (tenant INTEGER NOT NULL, no INTEGER NOT NULL, text TEXT,
      PRIMARY KEY (tenant, no));
    CREATE TABLE line (id TEXT PRIMARY KEY, tenant INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
      item INTEGER NOT NULL, FOREIGN KEY (tenant, item) REFERENCES item (tenant, no) ON DELETE CASCADE);
    CREATE TABLE note (id TEXT PRIMARY KEY, tenant INTEGER NOT NULL, item INTEGER NOT NULL,
      FOREIGN KEY (tenant, item) REFERENCES item (tenant, no) ON DELETE CASCADE);
    """

  private func devices(_ count: Int, _ rows: String = "") throws -> [Device] {
    try scratch.devices(count, Self.tenants + rows)
  }

  /// Synchronizes, and expects that all devices show these items, and that `verify` finds nothing.
  private func expect(
    _ devices: [Device], _ items: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try converge(
      devices, "SELECT text FROM item ORDER BY 1", items, sourceLocation: sourceLocation)
    for device in devices {
      #expect(try device.sealsNothing(), sourceLocation: sourceLocation)
      #expect(
        try LocalStore.verify(at: device.path).report.findings == [], sourceLocation: sourceLocation
      )
    }
  }

  private func names(_ device: Device) throws -> [String] {
    try device.rows(
      "SELECT text, name FROM item LEFT JOIN tenant ON tenant.id = tenant ORDER BY 1")
  }

  /// The number of a deleted row stays as long as a row contains it. It goes when that is sealed.
  @Test func verifyExpectsTheNumberInAnUnsealedDeletion() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["stop": ["place": "place"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE stop (place INTEGER NOT NULL, no INTEGER NOT NULL, PRIMARY KEY (place, no));
      INSERT INTO place VALUES (5, 'five'); INSERT INTO stop VALUES (5, 1), (5, 2);
      """, configuration: configuration)
    try devices[1].run("DELETE FROM place WHERE id = 5")
    try converge(devices, "SELECT place, no FROM stop", ["5|1", "5|2"])
    for row in 1...2 {
      try devices[0].run("DELETE FROM stop WHERE no = \(row)")
      #expect(try LocalStore.verify(at: devices[0].path).report.findings == [])
    }
    try converge(devices, "SELECT place, no FROM stop", [])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// The tenants are there before syncing began, or come afterwards.
  @Test(arguments: [true, false])
  func anItemStaysWhereItsTenantIsDeleted(isOld: Bool) throws {
    let rows =
      "INSERT INTO tenant VALUES (1, 'one'), (5, 'five'); INSERT INTO item VALUES (5, 1, 'a');"
    let devices = try devices(2, isOld ? rows : "")
    if !isOld { try devices[0].run(rows) }
    try converge(devices)
    try devices[1].run("DELETE FROM tenant WHERE id = 5")
    try expect(devices, ["a"])
    for device in devices { #expect(try names(device) == ["a|NULL"]) }
    // Edits and new rows go on.
    try devices[0].run("UPDATE item SET text = 'b'; INSERT INTO item VALUES (5, 2, 'c')")
    try expect(devices, ["b", "c"])
    try devices[1].run(
      "INSERT INTO note SELECT 'n', tenant, no FROM item WHERE text = 'c'; DELETE FROM item WHERE text = 'b'"
    )
    try expect(devices, ["c"])
    #expect(
      try devices[0].rows("SELECT note.id, text FROM note JOIN item USING (tenant) WHERE no = item")
        == ["n|c"])
    // Nothing remains of the tenant when the last item goes.
    try devices[0].run("DELETE FROM item")
    try expect(devices, [])
    #expect(try devices[0].rows("SELECT id FROM note") == [])
    let keys = try devices.map { try $0.rows("SELECT count(*) FROM docsync_id_4 WHERE key = 5") }
    #expect(keys == [["0"], ["0"]])
  }

  @Test func anItemStaysWhereItsTenantCameAndWent() throws {
    let devices = try devices(3)
    try devices[0].run(
      "INSERT INTO tenant VALUES (5, 'five'); INSERT INTO item VALUES (5, 1, 'a'); "
        + "INSERT INTO note VALUES ('n', 5, 1); DELETE FROM tenant")
    try devices[1].run(
      "INSERT INTO tenant VALUES (5, 'other'); INSERT INTO item VALUES (5, 1, 'b')")
    try expect(devices, ["a", "b"])
    for device in devices {
      #expect(try names(device) == ["a|NULL", "b|other"])
      #expect(try device.rows("SELECT id, text FROM note JOIN item USING (tenant)") == ["n|a"])
    }
    try devices[2].run("UPDATE item SET text = 'c' WHERE text = 'a'")
    try expect(devices, ["b", "c"])
  }

  /// A device that learns of the tenant's deletion before it sees the item, and one that has an item
  /// of its own.
  @Test func anItemComesWhereItsTenantIsGoneAlready() throws {
    let devices = try devices(3, "INSERT INTO tenant VALUES (5, 'five');")
    try devices[0].run("INSERT INTO item VALUES (5, 1, 'a')")
    try devices[1].run("DELETE FROM tenant; INSERT INTO tenant VALUES (5, 'again')")
    try devices[2].run("DELETE FROM tenant")
    try devices[2].receive(from: devices[1])
    try expect(devices, ["a"])
    try devices[2].run("DELETE FROM tenant")
    try devices[1].run("INSERT INTO item VALUES (5, 2, 'b')")
    try expect(devices, ["a", "b"])
    for device in devices { #expect(try names(device) == ["a|NULL", "b|NULL"]) }
  }

  /// As in SQL, a tenant with the number that an item contains is the item's tenant.
  @Test(arguments: [0, 1])
  func aTenantComesBackUnderTheNumberThatAnItemContains(author: Int) throws {
    let devices = try devices(2)
    try devices[0].run(
      "INSERT INTO tenant VALUES (1, 'x'), (5, 'five'); INSERT INTO item VALUES (5, 1, 'a')")
    try devices[1].run(
      "INSERT INTO tenant VALUES (5, 'other'); INSERT INTO item VALUES (5, 1, 'b')")
    try expect(devices, ["a", "b"])
    try devices[0].run("DELETE FROM tenant WHERE name = 'five'")
    try expect(devices, ["a", "b"])
    try devices[author].run("INSERT INTO tenant SELECT tenant, 'again' FROM item WHERE text = 'a'")
    try expect(devices, ["a", "b"])
    for device in devices { #expect(try names(device) == ["a|again", "b|other"]) }
    try devices[1 - author].run(
      "DELETE FROM tenant WHERE name = 'again'; DELETE FROM item WHERE text = 'a'")
    try expect(devices, ["b"])
  }

  /// docsync gives the number to no other tenant.
  @Test func theNumberInAnItemIsGivenToNoOtherTenant() throws {
    let devices = try devices(2)
    try devices[0].run("INSERT INTO tenant VALUES (5, 'five'); INSERT INTO item VALUES (5, 1, 'a')")
    try converge(devices)
    try devices[0].run("DELETE FROM tenant")
    try converge(devices)
    let number = try #require(devices[1].rows("SELECT tenant FROM item").first)
    try devices[1].run("DELETE FROM item")
    try devices[0].run("DELETE FROM item")
    try converge(devices)
    // Now it is free.
    try devices[0].run("INSERT INTO tenant VALUES (5, 'new'); INSERT INTO item VALUES (5, 9, 'i')")
    try expect(devices, ["i"])
    #expect(try names(devices[1]) == ["i|new"])
    #expect(try devices[1].rows("SELECT tenant FROM item") == [number])
    try devices[0].run("DELETE FROM tenant")
    try converge(devices)
    try devices[0].run("INSERT INTO tenant VALUES (6, 'six'), (7, 'seven')")
    try devices[1].run("INSERT INTO tenant VALUES (6, 'sechs')")
    try expect(devices, ["i"])
    for device in devices { #expect(try names(device) == ["i|NULL"]) }
  }

  /// A device that joins, and one whose content is replaced.
  @Test func itemsWithoutATenantAreInWholeStores() throws {
    let devices = try devices(3, "INSERT INTO tenant VALUES (1, 'one'), (5, 'five');")
    try devices[0].run("INSERT INTO item VALUES (5, 1, 'a'); DELETE FROM tenant WHERE id = 5")
    try devices[2].run("INSERT INTO tenant VALUES (6, 'mine')")
    try devices[1].run(
      "INSERT INTO tenant VALUES (6, 'six'); INSERT INTO item VALUES (6, 1, 'b'); DELETE FROM tenant WHERE id = 6"
    )
    try converge(Array(devices.prefix(2)))
    let path = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: path)
    _ = try devices[2].store.replaceContent(withSnapshotAt: path)
    try expect(devices, ["a", "b"])
    for device in devices { #expect(try names(device) == ["a|NULL", "b|NULL"]) }
    let joined = scratch.path + "/joined.db"
    _ = try devices[1].store.snapshot(to: joined)
    let fourth = try Device(
      store: try LocalStore.adopt(snapshotAt: joined, binding: scratch.binding("fourth")),
      path: joined)
    try fourth.run("UPDATE item SET text = 'c' WHERE text = 'b'")
    try expect(devices + [fourth], ["a", "c"])
  }

  /// The number stands for the tenant that is gone, and is a plain value in another row all the same,
  /// which comes before the tenant is deleted, or after.
  @Test(arguments: [true, false])
  func aPlainValueWithTheNumberOfATenantThatIsGoneStaysOne(isEarly: Bool) throws {
    var configuration = StoreConfiguration()
    configuration.references = ["extra": ["tenant": "tenant"]]
    let devices = try scratch.devices(
      3, Self.tenants + "CREATE TABLE extra (id TEXT PRIMARY KEY, tenant INTEGER, text TEXT);",
      configuration: configuration)
    try devices[0].run("INSERT INTO tenant VALUES (5, 'five'); INSERT INTO item VALUES (5, 1, 'a')")
    try devices[2].run("INSERT INTO extra VALUES ('plain', 5, 'x')")
    if isEarly { try converge(devices) }
    try devices[0].run("INSERT INTO note VALUES ('n', 5, 1); DELETE FROM tenant")
    if isEarly { try expect(devices, ["a"]) }
    _ = try devices[0].store.seal()
    try expect(devices, ["a"])
    for device in devices {
      #expect(try device.rows("SELECT tenant FROM extra") == ["5"])
      #expect(try device.rows("SELECT text FROM note JOIN item USING (tenant)") == ["a"])
    }
    try devices[0].run("INSERT INTO tenant VALUES (5, 'again'); UPDATE extra SET text = 'y'")
    try expect(devices, ["a"])
    for device in devices {
      #expect(try names(device) == ["a|again"])
      #expect(try device.rows("SELECT tenant FROM extra") == ["5"])
      #expect(try device.rows("SELECT text FROM note JOIN item USING (tenant)") == ["a"])
    }
    try devices[1].run("DELETE FROM item; DELETE FROM tenant")
    try expect(devices, [])
    for device in devices { #expect(try device.rows("SELECT tenant FROM extra") == ["5"]) }
  }

  /// Nothing records the number of a row with declared columns once the row is gone, so the item is
  /// hidden, on all devices.
  @Test(arguments: ["INSERT INTO tenant VALUES (5, 'five'); ", ""])
  func anItemIsHiddenWhoseTenantHadDeclaredColumns(insertion: String) throws {
    var configuration = StoreConfiguration()
    configuration.identities = ["tenant": .columns(["name"])]
    let devices = try scratch.devices(
      2,
      Self.tenants.replacing("name TEXT);", with: "name TEXT NOT NULL UNIQUE);")
        + "INSERT INTO tenant VALUES (4, 'four');"
        + (insertion.isEmpty ? "INSERT INTO tenant VALUES (5, 'five');" : ""),
      configuration: configuration)
    try devices[0].run(
      insertion
        + "INSERT INTO item VALUES (4, 1, 'a'), (5, 1, 'b'); DELETE FROM tenant WHERE id = 5")
    try expect(devices, ["a"])
    try devices[1].run("DELETE FROM tenant")
    try expect(devices, [])
    try devices[1].run("INSERT INTO tenant VALUES (9, 'five'), (8, 'four')")
    try expect(devices, ["a", "b"])
  }

  /// The same rule for keys that `--reference` declares: over integers, over text, and as the only
  /// column of the key.
  @Test(arguments: [
    ("INTEGER PRIMARY KEY", "PRIMARY KEY (person, name)"),
    ("INTEGER PRIMARY KEY", "PRIMARY KEY (name, person)"),
    ("TEXT PRIMARY KEY", "PRIMARY KEY (person, name)"),
    ("INTEGER PRIMARY KEY", "PRIMARY KEY (person)"),
  ])
  func aRowStaysWhoseDeclaredReferenceNamesADeletedRow(parent: String, key: String) throws {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id \(parent), name TEXT);
      CREATE TABLE meta (person \(parent.prefix(while: { $0 != " " })) NOT NULL, name TEXT NOT NULL, value TEXT, \(key));
      INSERT INTO person VALUES (7, 'seven'); INSERT INTO meta VALUES (7, 'n', 'a');
      """, configuration: configuration)
    try devices[0].run("INSERT INTO person VALUES (8, 'A8'); INSERT INTO meta VALUES (8, 'n', 'b')")
    try devices[1].run("INSERT INTO person VALUES (9, 'B8'); INSERT INTO meta VALUES (9, 'n', 'c')")
    try converge(devices, "SELECT value FROM meta ORDER BY 1", ["a", "b", "c"])
    try devices[0].run("DELETE FROM person")
    try converge(devices, "SELECT value FROM meta ORDER BY 1", ["a", "b", "c"])
    #expect(try devices[0].rows("SELECT * FROM person") == [])
    try devices[1].run("UPDATE meta SET value = value || value")
    try converge(devices, "SELECT value FROM meta ORDER BY 1", ["aa", "bb", "cc"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
    try devices[0].run("DELETE FROM meta")
    try converge(devices, "SELECT value FROM meta ORDER BY 1", [])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// A person is gone, and comes back because a visit refers to them: another person has their name by then, and
  /// stands in. What names the person in its key follows, as on the other device.
  @Test func aRowThatNamesAGoneRowFollowsTheRowThatStandsInForIt() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE visit (person INTEGER REFERENCES person, day INTEGER, PRIMARY KEY (person, day));
      CREATE TABLE meta (person INTEGER, name TEXT, PRIMARY KEY (name, person));
      INSERT INTO person VALUES (3, 'a'), (5, 'b'); INSERT INTO meta VALUES (3, 'n');
      """, configuration: configuration)
    try devices[0].run("PRAGMA foreign_keys = OFF; DELETE FROM person")
    _ = try devices[0].store.seal()
    try devices[1].run("INSERT INTO visit VALUES (3, 1)")
    try devices[0].run("INSERT INTO person VALUES (5, 'a')")
    let query = "SELECT m.name, p.name FROM meta AS m JOIN person AS p ON p.id = m.person"
    try converge(devices, query, ["n|a"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }
}
