import CSQLite
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
    if created.reason == .renamedExclusion {
      try expectNoWholeStore(devices[0])
    } else {
      try takeOver(devices, created)
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

  /// On a device that joins, each table could be the excluded one.
  private func expectNoWholeStore(_ device: Device) throws {
    let error = #expect(throws: StoreError.self) {
      _ = try device.store.snapshot(to: scratch.path + "/whole.db")
    }
    #expect(error?.message.contains("The excluded table \"secret\" does not exist") ?? false)
    #expect(
      try device.store.status().unsuitableTables.contains {
        $0.name == "secret" && $0.reason == .missingExclusion && !$0.wasSynchronized
      })
  }

  /// Whole stores do not have the table. A device that takes over one keeps its own.
  private func takeOver(_ devices: [Device], _ created: Created) throws {
    let whole = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: whole)
    #expect(
      try Program(whole).rows("SELECT 1 FROM sqlite_schema WHERE tbl_name = '\(created.table)'")
        == [])
    #expect(
      try SnapshotExamination(path: whole, checkCancellation: {}).damage == [])
    let third = try Device(
      store: LocalStore.adopt(snapshotAt: whole, binding: scratch.binding("third")), path: whole)
    #expect(try third.store.status().unsuitableTables == [])
    try third.run("INSERT INTO other VALUES ('m', 3)")
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
      if case .exclude(let table, let column) = action {
        "\(table)" + (column.map { ".\($0)" } ?? "")
      } else {
        nil as String?
      }
    }
    #expect(Set(excluded) == ["a", "b", "c", "child", "checked", "sorted", "computed"])
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["a", "b", "c", "child", "checked", "sorted", "computed"]
    let store = try LocalStore.create(
      at: path, binding: scratch.binding("a"), configuration: configuration)
    #expect(try store.status().tables.map(\.name) == ["fine"])
    // SQLite can copy tables only in a form without functions that it does not have.
    let whole = scratch.path + "/whole.db"
    _ = try store.snapshot(to: whole)
    #expect(
      try Program(whole).rows(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'docsync_*' "
          + "AND name NOT GLOB 'sqlite_*' ORDER BY 1") == [
          "a", "b", "c", "checked", "child", "computed", "fine", "sorted",
        ])
    #expect(
      try Program(whole).rows("SELECT sql FROM sqlite_schema WHERE name IN ('computed', 'sorted')")
        == [
          #"CREATE TABLE "computed" ("k" TEXT, PRIMARY KEY ("k"))"#,
          #"CREATE TABLE "sorted" ("k" TEXT, PRIMARY KEY ("k"))"#,
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
    #expect(loss.unsealedEdits >= (isSealed ? 1 : 2))
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
    // Only bookkeeping has the hidden row and the log.
    let loss = try devices[0].store.removalLoss()
    #expect(loss.parked.map(\.table) == ["folder"] && loss.needsConfirmation)
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

  /// The whole store does not have the table, as if its application were older.
  @Test func rowsOfATableThatAWholeStoreDoesNotHaveComeBack() throws {
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
    #expect(try devices[1].rows("SELECT 1 FROM sqlite_schema WHERE name = 'x'") == [])
    #expect(try devices[1].store.status().unsuitableTables == [])
    #expect(try devices[1].store.status().unknownNames == ["x"])
    for device in devices {
      try device.run("DROP TABLE IF EXISTS x; CREATE TABLE x (a INTEGER PRIMARY KEY, b)")
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

  /// Its words must not get into whole stores, and other devices need the table and the triggers.
  @Test func anExcludedTableThatNeedsItsProgramIsEmptyAndPlainInWholeStores() throws {
    let path = scratch.path + "/words.db"
    let secret =
      "CREATE TABLE secret (token TEXT PRIMARY KEY COLLATE mine, body VARCHAR(9) DEFAULT 'b', "
      + "CHECK (same(1)))"
    try run(
      """
      \(secret); CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT);
      CREATE VIRTUAL TABLE words USING fts5(body);
      CREATE TRIGGER fill AFTER INSERT ON secret BEGIN
        INSERT INTO words VALUES (NEW.body); END;
      CREATE TRIGGER remember AFTER INSERT ON note BEGIN
        INSERT INTO secret (token, body) VALUES (NEW.id, NEW.body); END;
      INSERT INTO secret VALUES ('t', 'unspeakable');
      """, in: path)
    let store = try LocalStore.create(
      at: path, binding: scratch.binding("a"), configuration: AppTriggerTests.excluding("secret"))
    let whole = scratch.path + "/whole.db"
    _ = try store.snapshot(to: whole)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: whole))
    #expect(bytes.range(of: Data("unspeakable".utf8)) == nil)
    let copy = try Program(whole)
    #expect(
      try copy.rows("SELECT count(*) FROM words UNION ALL SELECT count(*) FROM secret") == [
        "0", "0",
      ])
    #expect(
      try copy.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY 1")
        == ["fill", "remember"])
    let joined = scratch.path + "/joined.db"
    try FileManager.default.copyItem(atPath: whole, toPath: joined)
    let third = try Device(
      store: LocalStore.adopt(snapshotAt: joined, binding: scratch.binding("third")), path: joined)
    try third.run(
      "INSERT INTO note (body) VALUES ('mine'); CREATE TABLE new (k TEXT PRIMARY KEY); "
        + "INSERT INTO new VALUES (1)")
    #expect(try third.rows("SELECT body FROM secret") == ["mine"])
    #expect(try third.store.status().unsuitableTables == [])
    // The device itself keeps its form of the table.
    _ = try store.replaceContent(withSnapshotAt: whole)
    let device = try Program(path)
    #expect(try device.rows("SELECT sql FROM sqlite_schema WHERE name = 'secret'") == [secret])
    #expect(try device.rows("SELECT body FROM words") == ["unspeakable"])
  }

  /// The objects that read or write the table are of no use without it.
  @Test func wholeStoresHaveNothingThatNeedsAnUnsuitableTable() throws {
    let devices = try devices()
    try devices[0].run(
      """
      CREATE TABLE copies (id, body); INSERT INTO copies VALUES (1, 'hidden words');
      ALTER TABLE other ADD COLUMN copies;
      CREATE VIRTUAL TABLE words USING fts5(body, content='copies');
      INSERT INTO words (words) VALUES ('rebuild');
      CREATE TRIGGER keep AFTER INSERT ON note BEGIN
        INSERT INTO copies VALUES (NEW.id, NEW.body); END;
      CREATE TRIGGER look AFTER INSERT ON other WHEN NEW.copies IS NULL BEGIN
        UPDATE other SET v = 1, copies = (SELECT count(*) FROM tag) WHERE k = NEW.k; END;
      CREATE VIEW all_copies AS SELECT n.body FROM note AS n, copies AS c WHERE c.id = n.id;
      CREATE VIEW few_copies AS SELECT * FROM main.all_copies;
      CREATE VIEW others AS SELECT k, copies FROM other;
      """)
    try devices[1].run("ALTER TABLE other ADD COLUMN copies")
    try exchange(devices)
    let whole = scratch.path + "/whole.db"
    _ = try devices[0].store.snapshot(to: whole)
    let own =
      "SELECT name FROM sqlite_schema WHERE name NOT GLOB 'docsync_*' AND name NOT GLOB 'sqlite_*' "
      + "AND name NOT GLOB 'words_*' ORDER BY 1"
    #expect(
      try Program(whole).rows(own) == ["look", "note", "other", "others", "secret", "tag"])
    let bytes = try Data(contentsOf: URL(fileURLWithPath: whole))
    #expect(bytes.range(of: Data("hidden words".utf8)) == nil)
    // The device that takes it over keeps what it has.
    let before = try devices[0].rows(own)
    try devices[1].run("INSERT INTO note VALUES (7, 'more')")
    try exchange(devices)
    _ = try devices[0].store.replaceContent(withSnapshotAt: whole)
    try exchange(devices)
    #expect(try devices[0].rows(own) == before)
    try devices[0].run("INSERT INTO note VALUES (8, 'last')")
    #expect(
      try devices[0].rows("SELECT body FROM copies WHERE id IN (1, 8)") == ["hidden words", "last"])
    #expect(try devices[0].rows("SELECT rowid FROM words WHERE words MATCH 'hidden'") == ["1"])
    // The other device has none of it, and goes on.
    _ = try devices[1].store.replaceContent(withSnapshotAt: whole)
    try devices[1].run("INSERT INTO note VALUES (9, 'n'); ALTER TABLE other RENAME COLUMN v TO w")
    try converge(
      devices, "SELECT body FROM note WHERE id > 6 ORDER BY body", ["last", "more", "n"])
  }

  /// SQLite takes a byte order mark for white space, but for one within a name.
  @Test func aByteOrderMarkIsWhiteSpaceBetweenWords() {
    #expect(SQLTokens("SELECT 1 FROM \u{FEFF}x").namesTable("x"))
    #expect(
      SQLTokens("SELECT 1 FROM\u{FEFF} x").tokens.map(\.text) == [
        "SELECT", "1", "FROM\u{FEFF}", "x",
      ])
    #expect(SQLTokens("SELECT 1 FROM \"\u{FEFF}x\"").namesTable("\u{FEFF}x"))
  }

  /// SQLite says which words it takes for a name only if they are quoted.
  @Test func reservedWordsAreTheOnesOfSQLite() throws {
    let program = try Program(scratch.path + "/words.db")
    for word in SQLTokens.reservedWords {
      try program.run("CREATE TABLE \"\(word)\" (\"\(word)\")")
      // `NULL` is a value.
      for sql in ["SELECT t.\(word) FROM \"\(word)\" AS t", "SELECT 1 FROM \(word)"] {
        #expect(throws: Program.Failure.self, "\(sql)") { try program.run(sql) }
      }
    }
    for number in 0..<sqlite3_keyword_count() {
      var start: UnsafePointer<CChar>?
      var count: CInt = 0
      #expect(sqlite3_keyword_name(number, &start, &count) == SQLITE_OK)
      let bytes = UnsafeRawBufferPointer(start: try #require(start), count: Int(count))
      let word = SQLName(String(decoding: bytes, as: UTF8.self)).folded
      guard !SQLTokens.reservedWords.contains(word) else { continue }
      try program.run("CREATE TABLE \"\(word)\" (\"\(word)\"); SELECT 1 FROM \(word)")
    }
  }

  @Test func numbersAndBlobsAreNoNames() {
    let tokens = SQLTokens("a = 1 AND b<>X'00' OR [2] = x").tokens
    for name in ["a", "b", "2", "x"] as [SQLName] {
      #expect(tokens.contains { $0.isName(name) }, "\(name)")
    }
    #expect(!tokens.contains { $0.isName("1") })
    #expect(tokens.count { $0.isName("x") } == 1)
    #expect(tokens.map(\.text) == ["a", "=", "1", "AND", "b", "<", ">", "00", "OR", "2", "=", "x"])
    #expect(SQLTokens("b<>X'00'").tokens.last?.range == 3..<8)
  }

  /// A column may be left out whose name is a word of the index's condition.
  @Test func aColumnNamedLikeAWordOfAnIndexCanBeLeftOut() throws {
    let creation = """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a, "not", "in");
      CREATE UNIQUE INDEX i ON t (a) WHERE a IS NOT NULL AND "in" > 0;
      """
    var configuration = StoreConfiguration()
    configuration.excludedColumns = ["t": ["not"]]
    let devices = try scratch.devices(2, creation, configuration: configuration)
    try devices[0].run("INSERT INTO t VALUES (1, 'x', 'mine', 1)")
    try exchange(devices)
    #expect(try devices[1].rows("SELECT a, \"not\" FROM t") == ["x|NULL"])
    configuration.excludedColumns = ["t": ["in"]]
    let error = #expect(throws: StoreError.self) {
      _ = try Scratch().devices(1, creation, configuration: configuration)
    }
    #expect(error?.message.contains("\"in\" is part of the unique index \"i\"") == true)
  }

  @Test func namesOfTablesAreToldFromOthers() {
    for sql in [
      "SELECT 1 FROM x", "SELECT a FROM b, x", "SELECT a FROM b JOIN c USING (k), main.x",
      "DELETE FROM \"X\" WHERE 1", "INSERT INTO x (a) VALUES (1)", "REPLACE INTO x VALUES (1)",
      "UPDATE x SET a = 1", "UPDATE OR IGNORE x SET a = 1", "SELECT a FROM (b, x)",
      "SELECT 1 WHERE a IN x", "SELECT a FROM b LEFT JOIN c ON c.a = b.a, [x]",
    ] {
      #expect(SQLTokens(sql).namesTable("x"), "\(sql)")
    }
    for sql in [
      "SELECT x FROM a", "SELECT a, x FROM b", "INSERT INTO a (b, x) VALUES (x, x)",
      "UPDATE a SET b = 1, x = x", "SELECT a FROM b ORDER BY a, x", "SELECT f(a, x) FROM b",
      "SELECT a FROM b WHERE a IN (x, 1)", "SELECT a.x FROM a", "CREATE VIEW v (a, x) AS SELECT 1",
      "SELECT 'x' FROM a", "SELECT a IS DISTINCT FROM x FROM b",
    ] {
      #expect(!SQLTokens(sql).namesTable("x"), "\(sql)")
    }
  }

  /// Another device has a table of the same name, which is synchronized.
  @Test(
    arguments: [
      "CREATE TABLE x (id, v)",
      "CREATE TABLE x (id INTEGER PRIMARY KEY, v); CREATE INDEX i ON x (v) WHERE id > 5",
    ])
  func rowsRemainIfATableOfTheDocumentTakesTheirPlace(_ creation: String) throws {
    let devices = try devices()
    try devices[0].run(creation + "; INSERT INTO x VALUES (1, 'own'), (2, 'mine')")
    try devices[1].run(
      "CREATE TABLE x (id INTEGER PRIMARY KEY, v); INSERT INTO x VALUES (1, 'shared')")
    try exchange(devices)
    let whole = scratch.path + "/whole.db"
    _ = try devices[1].store.snapshot(to: whole)
    _ = try devices[0].store.replaceContent(withSnapshotAt: whole)
    #expect(try devices[0].rows("SELECT v FROM x") == ["shared"])
    #expect(try devices[0].rows("SELECT v FROM \"x (2)\" ORDER BY id") == ["own", "mine"])
    #expect(try devices[0].store.status().unsuitableTables.map(\.name) == ["x (2)"])
    try converge(devices, "SELECT v FROM x", ["shared"])
  }

  /// Bookkeeping has hidden rows of a table that no longer exists, and the schema has no table.
  @Test func aStoppedStoreWhoseOtherTablesAreGoneCanBeLookedAt() throws {
    let devices = try scratch.devices(
      2,
      "CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT UNIQUE); CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT)"
    )
    for device in devices { try device.run("INSERT INTO folder VALUES (1, 'f')") }
    try exchange(devices)
    #expect(try devices[0].store.parkedRows().map(\.table) == ["folder"])
    try migrate(devices[0], keyless + "; DROP TABLE folder")
    let status = try devices[0].store.status()
    #expect(status.tables == [] && status.parked == [])
    #expect(try devices[0].store.removalLoss().parked.map(\.table) == ["folder"])
    let findings = try LocalStore.verify(at: devices[0].path).report.findings
    #expect(Set(findings.map(\.kind)) == [.schemaUnsuitable])
    _ = try devices[0].store.conflicts()
    try expectStopped(devices[0], because: "\"note\" has no primary key")
    try migrate(devices[0], keyed)
    try exchange(devices)
    #expect(try devices[0].store.status().unsuitableTables == [])
  }

  /// The table referred to a suspended one by a column that is gone.
  @Test func aTableWithoutItsReferenceIsSuitable() throws {
    let device = try devices()[0]
    try migrate(
      device,
      keyless + "; CREATE TABLE t (name TEXT PRIMARY KEY); INSERT INTO t SELECT name FROM tag; "
        + "DROP TABLE tag; ALTER TABLE t RENAME TO tag")
    #expect(try device.store.status().leftOut["tag"] == nil)
    #expect(try device.store.status().unsuitableTables.map(\.name) == ["note"])
  }
}
