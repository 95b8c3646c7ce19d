import Foundation
import GRDB
import SyncModel
import Testing

@testable import SyncStore

/// Tables that cannot be synchronized: new ones stay on their device and stop nothing; if one was
/// synchronized before, nothing is synchronized until it can be again.
@Suite struct UnsuitableTablesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT);
    CREATE TABLE tag (name TEXT PRIMARY KEY, note INTEGER REFERENCES note (id) ON DELETE CASCADE);
    CREATE TABLE other (k TEXT PRIMARY KEY, v);
    CREATE TABLE secret (token TEXT PRIMARY KEY);
    INSERT INTO note VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');
    INSERT INTO tag VALUES ('red', 1); INSERT INTO secret VALUES ('s');
    """

  private func devices(_ count: Int = 2) throws -> [Device] {
    try scratch.devices(count, Self.schema, configuration: AppTriggerTests.excluding("secret"))
  }

  /// A table that a program creates, and the reason for which it stays on the device.
  struct Created: CustomTestStringConvertible {
    var table: SQLName = "x"
    var reason: StoreStatus.LeftOutReason
    var sql: String
    var testDescription: String { sql }

    /// The query for the number of its rows.
    var count: String { "SELECT count(*) FROM \"\(table)\"" }
  }

  private static let created = [
    Created(reason: .noPrimaryKey, sql: "CREATE TABLE x AS SELECT * FROM note"),
    Created(reason: .noPrimaryKey, sql: "CREATE TABLE x (a, b); INSERT INTO x VALUES (1, 2)"),
    Created(
      reason: .keyRead,
      sql: "CREATE TABLE x (id INTEGER PRIMARY KEY, a CHECK (a > id)); INSERT INTO x VALUES (1, 2)"),
    Created(
      reason: .keyRead,
      sql: "CREATE TABLE x (id INTEGER PRIMARY KEY, a AS (id + 1)); INSERT INTO x VALUES (1)"),
    Created(
      reason: .keyRead,
      sql: """
        CREATE TABLE x (id INTEGER PRIMARY KEY, a); CREATE INDEX i ON x (a) WHERE id > 5; \
        INSERT INTO x VALUES (1, 2)
        """),
    Created(
      reason: .programDefinitions,
      sql: "CREATE TABLE x (k TEXT PRIMARY KEY, a TEXT COLLATE mine); INSERT INTO x VALUES (1, 2)"),
    Created(
      reason: .programDefinitions,
      sql: "CREATE TABLE x (k TEXT COLLATE mine PRIMARY KEY, a); INSERT INTO x VALUES (1, 2)"),
    Created(
      reason: .programDefinitions,
      sql: """
        CREATE TABLE x (k TEXT PRIMARY KEY, a TEXT); CREATE INDEX i ON x (a COLLATE mine); \
        INSERT INTO x VALUES (1, 2)
        """),
    Created(
      reason: .programDefinitions,
      sql: "CREATE TABLE x (k TEXT PRIMARY KEY, a CHECK (same(a))); INSERT INTO x VALUES (1, 2)"),
    Created(
      reason: .programDefinitions,
      sql: "CREATE TABLE x (k TEXT PRIMARY KEY, a, b AS (same(a))); INSERT INTO x VALUES (1, 2)"),
    Created(
      reason: .programDefinitions,
      sql: """
        CREATE TABLE x (k TEXT PRIMARY KEY, a); CREATE UNIQUE INDEX i ON x (a) WHERE same(a); \
        INSERT INTO x VALUES (1, 2)
        """),
    Created(
      reason: .programDefinitions,
      sql: """
        CREATE TABLE x (k TEXT PRIMARY KEY, a); CREATE INDEX i ON x (same(a)); \
        INSERT INTO x VALUES (1, 2)
        """),
    Created(
      reason: .ambiguousReference,
      sql: """
        CREATE TABLE y (id INTEGER PRIMARY KEY); INSERT INTO y VALUES (1); \
        CREATE TABLE x (k TEXT PRIMARY KEY, r INTEGER REFERENCES note (id) REFERENCES y (id)); \
        INSERT INTO x VALUES ('k', 1)
        """),
    Created(
      reason: .reference,
      sql: """
        CREATE TABLE y (a UNIQUE); INSERT INTO y VALUES (1); \
        CREATE TABLE x (k TEXT PRIMARY KEY, r REFERENCES y (a)); INSERT INTO x VALUES ('k', 1)
        """),
    Created(
      reason: .reference,
      sql:
        "CREATE TABLE x (k TEXT PRIMARY KEY, r REFERENCES secret); INSERT INTO x VALUES ('k', 's')"
    ),
    Created(
      table: "moved", reason: .renamedExclusion, sql: "ALTER TABLE secret RENAME TO moved"),
    Created(
      reason: .renamedExclusion,
      sql: "DROP TABLE secret; CREATE TABLE x (k TEXT PRIMARY KEY); INSERT INTO x VALUES (1)"),
  ]

  /// Runs SQL as a program with a function `same` and a collation `mine` of its own.
  private func run(_ sql: String, in path: String) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(60)
    configuration.prepareDatabase { database in
      database.add(
        function: DatabaseFunction("same", argumentCount: 1, pure: true) { $0.first })
      database.add(
        collation: DatabaseCollation("mine") { $0.compare($1) })
    }
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  @Test(arguments: created, [true, false])
  func aTableThatAProgramCreatesStaysOnItsDevice(_ created: Created, isOpen: Bool) throws {
    var devices = try devices()
    devices[0] = try devices[0].changed(isOpen: isOpen) { try run(created.sql, in: $0.path) }
    let status = try devices[0].store.status()
    #expect(status.leftOut[created.table] == created.reason)
    let unsuitable = try #require(
      status.unsuitableTables.first { $0.name == created.table })
    #expect(!unsuitable.wasSynchronized)
    #expect(!unsuitable.message.isEmpty && !unsuitable.remedy.isEmpty)
    // Everything else goes on.
    try devices[0].run("UPDATE note SET body = 'A' WHERE id = 1; INSERT INTO other VALUES ('k', 1)")
    try devices[1].run("DELETE FROM note WHERE id = 2; INSERT INTO other VALUES ('l', 2)")
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT body FROM note ORDER BY 1") == ["A", "c", "d"])
      #expect(try device.rows("SELECT k FROM other ORDER BY 1") == ["k", "l"])
    }
    #expect(try devices[0].changes().allSatisfy { $0.table != created.table })
    let findings = try LocalStore.verify(at: devices[0].path).report.findings
    #expect(findings.contains { $0.kind == .schemaUnsuitable && $0.table == created.table })
    #expect(findings.allSatisfy { $0.severity == .note })
    // Whole stores do not have its rows.
    let whole = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: whole)
    let exists = try Program(whole).rows(
      "SELECT count(*) FROM sqlite_schema WHERE name = '\(created.table)'")
    #expect(exists == [created.reason == .programDefinitions ? "0" : "1"])
    if exists == ["1"] {
      #expect(try Program(whole).rows("SELECT * FROM \"\(created.table)\"") == [])
    }
    #expect(
      try SnapshotExamination(path: whole, checkCancellation: {}).damage == [])
    let third = try Device(
      store: LocalStore.adopt(snapshotAt: whole, binding: scratch.binding("third")), path: whole)
    try third.run("INSERT INTO other VALUES ('m', 3)")
    if created.reason != .renamedExclusion {
      try takeOver(third, devices, created)
    }
    // Leaving is possible.
    try devices[0].store.removeBookkeeping { _ in }
    #expect(
      try devices[0].rows("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'docsync_*'")
        == ["0"])
    if created.reason != .programDefinitions {
      #expect(try devices[0].rows(created.count) != ["0"])
    }
  }

  /// A device that takes over a whole store keeps its own table.
  private func takeOver(_ third: Device, _ devices: [Device], _ created: Created) throws {
    try devices[0].receive(from: devices[1], third)
    let other = scratch.path + "/other.db"
    try devices[1].receive(from: devices[0], third)
    _ = try devices[1].store.snapshot(to: other)
    _ = try devices[0].store.replaceContent(withSnapshotAt: other)
    #expect(try devices[0].rows("SELECT k FROM other ORDER BY 1") == ["k", "l", "m"])
    if created.reason != .programDefinitions {
      #expect(try devices[0].rows(created.count) != ["0"])
    }
  }

  @Test func allTablesAreNamedAtOnce() throws {
    let path = scratch.path + "/all.db"
    try run(
      """
      CREATE TABLE a (x); CREATE TABLE b AS SELECT 1 AS x; CREATE TABLE c (y UNIQUE);
      CREATE TABLE child (k TEXT PRIMARY KEY, c REFERENCES c (y));
      CREATE TABLE checked (id INTEGER PRIMARY KEY, x CHECK (x > id));
      CREATE TABLE sorted (k TEXT PRIMARY KEY COLLATE mine);
      CREATE TABLE computed (k TEXT PRIMARY KEY, x AS (same(k)));
      CREATE TABLE fine (k TEXT PRIMARY KEY);
      """, in: path)
    let error = #expect(throws: StoreError.self) {
      _ = try LocalStore.plan(at: path, configuration: StoreConfiguration())
    }
    let refusal = try #require(error)
    #expect(refusal.code == .unsupportedSchema)
    #expect(refusal.message.hasPrefix("7 tables cannot be synchronized. 3 tables have no primary"))
    #expect(refusal.message.contains("told apart: \"a\", \"b\", \"c\". "))
    for table in ["child", "checked", "sorted", "computed"] {
      #expect(refusal.message.contains("\"\(table)\""))
    }
    let excluded = refusal.remedy.actions.compactMap { action in
      if case .exclude(let name) = action { name } else { nil }
    }
    #expect(
      Set(excluded) == ["a", "b", "c", "child", "checked", "sorted.k", "sorted", "computed"]
        || Set(excluded) == ["a", "b", "c", "child", "checked", "sorted", "computed"])
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["a", "b", "c", "child", "checked", "sorted", "computed"]
    let store = try LocalStore.create(
      at: path, binding: scratch.binding("a"), configuration: configuration)
    #expect(try store.status().tables.map(\.name) == ["fine"])
    // SQLite cannot copy tables whose functions it does not have.
    let whole = scratch.path + "/whole.db"
    _ = try store.snapshot(to: whole)
    #expect(
      try Program(whole).rows(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'docsync_*' "
          + "AND name NOT GLOB 'sqlite_*' ORDER BY 1") == [
          "a", "b", "c", "checked", "child", "fine",
        ])
  }

  @Test func tablesWithoutAPrimaryKeyAreNamedTogether() throws {
    let path = scratch.path + "/keyless.db"
    try Program(path).run("CREATE TABLE a1 (x); CREATE TABLE a2 (x); CREATE TABLE a3 (x)")
    let error = #expect(throws: StoreError.self) {
      _ = try LocalStore.plan(at: path, configuration: StoreConfiguration())
    }
    #expect(
      error?.message
        == "3 tables have no primary key, so their rows cannot be told apart: "
        + "\"a1\", \"a2\", \"a3\".")
    #expect(
      error?.remedy.description
        == "Give them one (for example a column “id INTEGER PRIMARY KEY”) or leave the tables out "
        + "with “Exclude a1” “Exclude a2” “Exclude a3”.")
  }

  private let keyless =
    "CREATE TABLE new AS SELECT * FROM note; DROP TABLE note; "
    + "ALTER TABLE new RENAME TO note"
  private let keyed =
    "CREATE TABLE new (id INTEGER PRIMARY KEY, body TEXT); "
    + "INSERT INTO new SELECT * FROM note; DROP TABLE note; ALTER TABLE new RENAME TO note"

  private func migrate(_ device: Device, _ sql: String) throws {
    try device.run(
      "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; \(sql); "
        + "PRAGMA legacy_alter_table = OFF")
  }

  private func expectStopped(_ device: Device, because problem: String) throws {
    for stopped in [
      { try device.store.checkTables() }, { _ = try device.store.digest() },
      { _ = try device.store.snapshot(to: scratch.path + "/whole.db") },
      { try device.store.checkCompleteness() },
    ] as [() throws -> Void] {
      let error = #expect(throws: StoreError.self) { try stopped() }
      #expect([.unsupportedSchema, .badConfiguration].contains(error?.code))
      #expect(error?.message.contains(problem) ?? false, "\(String(describing: error))")
      #expect(error?.message.contains("It was synchronized before") ?? false)
    }
  }

  @Test(arguments: [true, false], [true, false])
  func aTableThatLosesItsKeyStopsItsDeviceUntilItHasOne(isOpen: Bool, isSealed: Bool) throws {
    var devices = try devices()
    try devices[0].run("UPDATE note SET body = 'A' WHERE id = 1")
    if isSealed { try exchange(devices) }
    devices[0] = try devices[0].changed(isOpen: isOpen) { try migrate($0, keyless) }
    let status = try devices[0].store.status()
    #expect(status.leftOut["note"] == .noPrimaryKey && status.leftOut["tag"] == .reference)
    #expect(status.unsuitableTables.map(\.wasSynchronized) == [true, true])
    try devices[0].run(
      """
      PRAGMA foreign_keys = OFF; DELETE FROM note WHERE id = 3; INSERT INTO note VALUES (9, 'new');
      INSERT INTO tag VALUES ('blue', 9); INSERT INTO other VALUES ('k', 1);
      """)
    try expectStopped(devices[0], because: "\"note\" has no primary key")
    try devices[1].run(
      """
      UPDATE note SET body = 'B' WHERE id = 2; DELETE FROM note WHERE id = 4;
      INSERT INTO note VALUES (5, 'e'); INSERT INTO tag VALUES ('green', 5);
      """)
    #expect(throws: StoreError.self) { _ = try devices[0].store.seal() }
    #expect(throws: StoreError.self) { try devices[0].receive(from: devices[1]) }
    let loss = try devices[0].store.removalLoss()
    #expect(loss.unknownRows == [:])
    let findings = try LocalStore.verify(at: devices[0].path).report.findings
    #expect(Set(findings.map(\.kind)) == [.schemaUnsuitable])
    #expect(findings.map(\.severity) == [.error, .error])
    // All goes on as after a remake.
    devices[0] = try devices[0].changed(isOpen: isOpen) { try migrate($0, keyed) }
    #expect(try devices[0].store.status().unsuitableTables == [])
    try converge(devices, "SELECT body FROM note ORDER BY 1", ["A", "B", "e", "new"])
    for device in devices {
      #expect(
        try device.rows("SELECT name, body FROM tag LEFT JOIN note ON note = id ORDER BY 1")
          == ["blue|new", "green|e", "red|A"])
      #expect(try device.rows("SELECT k FROM other") == ["k"])
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.sealsNothing())
    }
    _ = try devices[0].store.snapshot(to: scratch.path + "/whole.db")
  }

  /// A table under another name is the same table, with the same columns under other names.
  @Test(arguments: [true, false])
  func aTableThatIsRenamedWhileItCannotBeSynchronizedIsTheSameAfterwards(isOpen: Bool) throws {
    var devices = try devices()
    devices[0] = try devices[0].changed(isOpen: isOpen) {
      try $0.run(
        """
        CREATE TABLE kinds (name TEXT UNIQUE); ALTER TABLE note RENAME TO memo;
        ALTER TABLE memo ADD COLUMN kind TEXT REFERENCES kinds (name);
        """)
    }
    try expectStopped(devices[0], because: "\"memo\" refers")
    try devices[0].run("ALTER TABLE memo RENAME COLUMN body TO text")
    try expectStopped(devices[0], because: "\"memo\" refers")
    devices[0] = try devices[0].changed(isOpen: isOpen) {
      try $0.run(
        """
        DROP TABLE kinds; CREATE TABLE kinds (name TEXT PRIMARY KEY);
        UPDATE memo SET text = 'A' WHERE id = 1
        """)
    }
    try devices[1].run("UPDATE note SET body = 'B' WHERE id = 2")
    try exchange(devices)
    try exchange(devices)
    #expect(try devices[0].rows("SELECT text FROM memo ORDER BY 1") == ["A", "B", "c", "d"])
    #expect(try devices[1].rows("SELECT body FROM note ORDER BY 1") == ["A", "B", "c", "d"])
  }

  @Test func aStoppedStoreCanBeTakenOutOfSync() throws {
    let device = try devices()[0]
    try migrate(device, keyless + "; CREATE TABLE y (k TEXT PRIMARY KEY); INSERT INTO y VALUES (1)")
    try expectStopped(device, because: "\"note\" has no primary key")
    try device.store.removeBookkeeping { _ in }
    #expect(
      try device.rows("SELECT count(*) FROM sqlite_schema WHERE name GLOB 'docsync_*'") == ["0"])
    #expect(try device.rows("SELECT body FROM note ORDER BY 1") == ["a", "b", "c", "d"])
  }

  /// Bookkeeping has hidden rows of the table meanwhile.
  @Test func hiddenRowsOfATableThatStopsItsDeviceStay() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE file (id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder (id));
      CREATE TABLE other (k TEXT PRIMARY KEY, v);
      """)
    for (number, device) in devices.enumerated() {
      try device.run(
        "INSERT INTO folder VALUES (1, 'f'); INSERT INTO file VALUES (1, 1); "
          + "INSERT INTO other VALUES ('\(number)', 1)")
    }
    try exchange(devices)
    #expect(try devices[0].store.parkedRows().map(\.table) == ["folder"])
    try devices[0].run(
      "CREATE UNIQUE INDEX i ON folder (name) WHERE id > 5; INSERT INTO other VALUES ('a', 2)")
    try devices[1].run("DELETE FROM other WHERE k = '0'")
    try expectStopped(devices[0], because: "folder")
    #expect(try devices[0].store.status().leftOut["folder"] == .keyRead)
    #expect(try devices[0].store.parkedRows() == [])
    try devices[0].run("DROP INDEX i; UPDATE folder SET name = 'g'")
    try exchange(devices)
    try converge(devices, "SELECT k FROM other ORDER BY 1", ["1", "a"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.rows("SELECT count(*) FROM file") == ["2"])
    }
  }

  @Test(arguments: [true, false]) func rowsAreSentOnceATableIsSuitable(isOpen: Bool) throws {
    var devices = try devices()
    try devices[0].run("CREATE TABLE x (id, v); INSERT INTO x VALUES (1, 'one'), (2, 'two')")
    try exchange(devices)
    #expect(try devices[1].store.status().unknownNames == [])
    devices[0] = try devices[0].changed(isOpen: isOpen) {
      try $0.run(
        "CREATE TABLE y (id INTEGER PRIMARY KEY, v); INSERT INTO y SELECT * FROM x; "
          + "DROP TABLE x; ALTER TABLE y RENAME TO x")
    }
    try exchange(devices)
    #expect(try devices[1].store.status().unknownNames == ["x"])
    try devices[1].run("CREATE TABLE x (id INTEGER PRIMARY KEY, v)")
    try converge(devices, "SELECT v FROM x ORDER BY 1", ["one", "two"])
  }

  @Test func tablesThatNoLongerFitTheConfigurationStopTheirDevice() throws {
    var configuration = StoreConfiguration()
    configuration.references = ["line": ["note": "note"]]
    configuration.identities = ["label": .columns(["name"])]
    configuration.columnMergeTypes = ["tally": ["n": .counter]]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT);
      CREATE TABLE line (id INTEGER PRIMARY KEY, note INTEGER);
      CREATE TABLE label (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE tally (k TEXT PRIMARY KEY, n INTEGER); CREATE TABLE other (k TEXT PRIMARY KEY);
      INSERT INTO note VALUES (1, 'a'); INSERT INTO line VALUES (1, 1);
      INSERT INTO label VALUES (1, 'red'); INSERT INTO tally VALUES ('all', 0);
      """, configuration: configuration)
    try migrate(
      devices[0],
      """
      \(keyless); DROP TABLE label; CREATE TABLE label (id TEXT PRIMARY KEY, name TEXT UNIQUE);
      DROP TABLE tally; CREATE TABLE tally (k TEXT PRIMARY KEY, n TEXT);
      INSERT INTO other VALUES ('k')
      """)
    #expect(
      try devices[0].store.status().leftOut == [
        "note": .noPrimaryKey, "line": .reference, "label": .configuration,
        "tally": .configuration,
      ])
    try expectStopped(devices[0], because: "label")
  }

  @Test func anExcludedTableUnderAnotherNameIsNotShared() throws {
    let devices = try devices()
    try devices[0].run("ALTER TABLE secret RENAME TO moved; INSERT INTO moved VALUES ('t')")
    try exchange(devices)
    #expect(try devices[1].store.status().unknownNames == [])
    // With a table of the excluded name, the other table is one like any.
    try devices[0].run("CREATE TABLE secret (token TEXT PRIMARY KEY)")
    #expect(try devices[0].store.status().unsuitableTables == [])
    try exchange(devices)
    #expect(try devices[1].store.status().unknownNames == ["moved"])
  }

  @Test func aDatabaseThatJoinsTakesItsTablesAlong() throws {
    let first = try devices(1)[0]
    let path = scratch.path + "/joining.db"
    try Program(path).run(
      Self.schema + "CREATE TABLE x (a, n REFERENCES note (id)); INSERT INTO x VALUES ('x', 2);")
    let whole = scratch.path + "/whole.db"
    _ = try first.store.snapshot(to: whole)
    let (store, merged) = try LocalStore.adopt(
      snapshotAt: whole, mergingDatabaseAt: path, binding: scratch.binding("joined"))
    let device = try Device(store: store, path: whole)
    #expect(merged.newTables == [] && merged.localTables == ["secret", "x"])
    #expect(try device.rows("SELECT a, body FROM x JOIN note ON n = id") == ["x|b"])
    #expect(try device.store.status().leftOut["x"] == .noPrimaryKey)
    try first.receive(from: device)
    #expect(try first.store.status().unknownNames == [])
  }

  /// The device takes over the schema of the whole store, and its own rows come back with a key.
  @Test func aTableTakesTheFormThatItHasInAWholeStore() throws {
    let devices = try devices()
    try devices[0].run("CREATE TABLE x (a); INSERT INTO x VALUES (1)")
    let whole = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: whole)
    try devices[1].run(
      "CREATE TABLE x (a INTEGER PRIMARY KEY, b); INSERT INTO other VALUES ('k', 1)")
    _ = try devices[1].outgoing()
    try devices[1].run("INSERT INTO x VALUES (7, 'b')")
    _ = try devices[1].outgoing()
    _ = try devices[1].store.replaceContent(withSnapshotAt: whole)
    #expect(try devices[1].rows("SELECT * FROM x") == [])
    #expect(try devices[1].store.status().leftOut["x"] == .noPrimaryKey)
    #expect(try devices[1].store.status().unknownNames == ["x"])
    for device in devices {
      try device.run("DROP TABLE x; CREATE TABLE x (a INTEGER PRIMARY KEY, b)")
    }
    try converge(devices, "SELECT b FROM x", ["b"])
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }

  /// Otherwise the whole store would bring an empty table of the excluded name, and the other table
  /// would be one like any.
  @Test func aWholeStoreIsNotTakenOverIfAnExcludedTableHasAnotherName() throws {
    let devices = try devices()
    let whole = scratch.path + "/whole.db"
    _ = try devices[1].store.snapshot(to: whole)
    try devices[0].run("ALTER TABLE secret RENAME TO moved")
    let error = #expect(throws: StoreError.self) {
      _ = try devices[0].store.replaceContent(withSnapshotAt: whole)
    }
    #expect(error?.message.contains("may be that table under another name") ?? false)
    try devices[0].run("ALTER TABLE moved RENAME TO secret")
    _ = try devices[0].store.replaceContent(withSnapshotAt: whole)
    #expect(try devices[0].rows("SELECT token FROM secret") == ["s"])
  }

  /// The rows would be shared under the name of the other table.
  @Test func anExcludedTableDoesNotTakeThePlaceOfASynchronizedOne() throws {
    let devices = try devices()
    try migrate(devices[0], "DROP TABLE note; ALTER TABLE secret RENAME TO note")
    try expectStopped(devices[0], because: "may be that table under another name")
  }

  @Test func defaultValuesOfTheProgramKeepNoTableFromBeingSynchronized() throws {
    let devices = try devices()
    for device in devices {
      try run(
        """
        CREATE TABLE x (id TEXT PRIMARY KEY DEFAULT (same('k')), a);
        INSERT INTO x (a) VALUES ('\(device.path.hashValue)')
        """, in: device.path)
      #expect(try device.store.status().leftOut["x"] == nil)
    }
    try run("UPDATE x SET a = 'one'", in: devices[0].path)
    try converge(devices, "SELECT a FROM x", ["one"])
  }

  /// In a whole store of the device, other devices would miss the rows of the table.
  @Test func aDeviceUploadsNoWholeStoreIfOthersSynchronizeItsUnsuitableTable() throws {
    let devices = try devices()
    try devices[0].run("CREATE TABLE x (a); INSERT INTO x VALUES (1)")
    let whole = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: whole)
    try devices[1].run("CREATE TABLE x (a INTEGER PRIMARY KEY, b); INSERT INTO x VALUES (7, 'b')")
    try exchange(devices)
    #expect(try devices[0].store.status().unknownNames == ["x"])
    let error = #expect(throws: StoreError.self) {
      _ = try devices[0].store.snapshot(to: scratch.path + "/other.db")
    }
    #expect(error?.code == .unsupportedSchema)
    #expect(error?.message.contains("\"x\", which other devices synchronize") ?? false)
    // Everything else goes on.
    try devices[0].run("INSERT INTO other VALUES ('k', 1)")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT k FROM other") == ["k"])
  }

  /// A table that was synchronized by an earlier build goes on.
  @Test func collationsOfIndexesAndExcludedColumnsStopNoTableThatIsSynchronized() throws {
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["note": ["sort"]]
    let devices = try scratch.devices(
      2, "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT, sort TEXT)",
      configuration: configuration)
    for device in devices {
      try run(
        """
        DROP TABLE note;
        CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT, sort TEXT COLLATE mine);
        """, in: device.path)
      #expect(try device.store.status().unsuitableTables == [])
    }
    try devices[0].run("INSERT INTO note (body) VALUES ('a')")
    try converge(devices, "SELECT body FROM note", ["a"])
    try run("CREATE INDEX j ON note (body COLLATE mine)", in: devices[0].path)
    #expect(try devices[0].store.status().unsuitableTables == [])
  }
}
