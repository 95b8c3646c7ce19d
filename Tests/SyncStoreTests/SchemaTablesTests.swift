import Foundation
import GRDB
import SyncModel
import Testing

@testable import SyncStore

/// Tables in which frameworks record their migrations.
@Suite struct SchemaTablesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// The migrations of an application, up to a version.
  private static func migrator(_ version: Int) -> DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("v1 notes") { database in
      try database.create(table: "folder") { table in
        table.autoIncrementedPrimaryKey("id")
        table.column("name", .text).notNull().unique()
      }
      try database.create(table: "note") { table in
        table.autoIncrementedPrimaryKey("id")
        table.belongsTo("folder", onDelete: .cascade).notNull()
        table.column("body", .text).notNull()
      }
      try database.execute(
        sql:
          "INSERT INTO folder (name) VALUES ('in'); INSERT INTO note (folderId, body) VALUES (1, 'a')"
      )
    }
    guard version > 1 else { return migrator }
    migrator.registerMigration("v2 color") { database in
      try database.alter(table: "note") { $0.add(column: "color", .text).defaults(to: "none") }
    }
    guard version > 2 else { return migrator }
    migrator.registerMigration("v3 again") { database in
      try database.execute(
        sql: """
          CREATE TABLE new_note (id INTEGER PRIMARY KEY AUTOINCREMENT, folderId INTEGER NOT NULL \
          REFERENCES folder ON DELETE CASCADE, body TEXT NOT NULL, color TEXT DEFAULT 'none', \
          stars INTEGER NOT NULL DEFAULT 0);
          INSERT INTO new_note (id, folderId, body, color) SELECT id, folderId, body, color FROM note;
          DROP TABLE note; ALTER TABLE new_note RENAME TO note;
          CREATE INDEX note_on_folderId ON note (folderId)
          """)
    }
    return migrator
  }

  /// Runs the migrations of a version of the application, as it does when it starts.
  private func update(_ path: String, to version: Int) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(60)
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    try Self.migrator(version).migrate(queue)
    try queue.close()
  }

  private func devices(
    _ count: Int, version: Int = 1, configuration: StoreConfiguration = StoreConfiguration()
  ) throws -> [Device] {
    let path = scratch.path + "/app.db"
    try update(path, to: version)
    let first = try Device(
      store: LocalStore.create(
        at: path, binding: scratch.binding("first"), configuration: configuration), path: path)
    return [first] + (try (1..<count).map { try join(first, "device\($0)") })
  }

  private func join(_ device: Device, _ name: String) throws -> Device {
    let path = try snapshot(device, name)
    let store = try LocalStore.adopt(snapshotAt: path, binding: scratch.binding(name))
    return try Device(store: store, path: path)
  }

  private func snapshot(_ device: Device, _ name: String) throws -> String {
    let path = scratch.path + "/\(name).db"
    _ = try device.outgoing()
    _ = try device.store.snapshot(to: path)
    return path
  }

  private let migrations = "SELECT identifier FROM grdb_migrations ORDER BY 1"

  /// All orders in which two devices can update the application from version 1, with a
  /// synchronization after each step.
  @Test(arguments: [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
  func anUpdateOnOneDeviceDoesNotReachTheOther(order: [Int]) throws {
    var devices = try devices(2)
    var versions = [1, 1]
    for (step, index) in order.enumerated() {
      versions[index] += 1
      devices[index] = try devices[index].changed(isOpen: step % 2 == 0) {
        try update($0.path, to: versions[index])
      }
      _ = try devices[index].store.status()
      try devices[index].run(
        "INSERT INTO note (folderId, body, color) SELECT id, 'n\(step)', 'c\(step)' FROM folder; "
          + "UPDATE note SET color = 'c\(step)' WHERE body = 'a'")
      try exchange(devices)
      for (device, version) in zip(devices, versions) {
        #expect(
          try device.rows(migrations)
            == Array(["v1 notes", "v2 color", "v3 again"].prefix(version)))
      }
    }
    try converge(
      devices, "SELECT body, color, stars FROM note ORDER BY body",
      ["a|c3|0", "n0|c0|0", "n1|c1|0", "n2|c2|0", "n3|c3|0"])
    #expect(try devices.flatMap { try $0.changes() }.allSatisfy { $0.table != "grdb_migrations" })
    #expect(try devices[0].store.status().leftOut["grdb_migrations"] == .schema)
  }

  @Test(arguments: 1...3)
  func whoJoinsHasTheSchemaAndItsRecord(version: Int) throws {
    let devices = try devices(2, version: version)
    #expect(try devices[1].rows(migrations) == devices[0].rows(migrations))
    for device in devices { try update(device.path, to: 3) }
    for device in devices { _ = try device.store.status() }
    try devices[1].run("UPDATE note SET stars = 3")
    try converge(devices, "SELECT body, color, stars FROM note", ["a|none|3"])
  }

  @Test(arguments: [(1, 3), (3, 1), (2, 2)])
  func whoTakesOverAWholeStoreHasTheRecordOfItsSchema(versions: (Int, Int)) throws {
    var devices = try devices(2)
    for (index, version) in [versions.0, versions.1].enumerated() {
      devices[index] = try devices[index].changed(isOpen: false) {
        try update($0.path, to: version)
      }
    }
    let whole = try snapshot(devices[0], "whole")
    _ = try devices[1].store.replaceContent(withSnapshotAt: whole)
    try devices[1].checkIntegrity()
    #expect(try devices[1].rows(migrations) == devices[0].rows(migrations))
    let columns = "SELECT name FROM pragma_table_info('note')"
    #expect(try devices[1].rows(columns) == devices[0].rows(columns))
    for index in devices.indices {
      devices[index] = try devices[index].changed(isOpen: false) { try update($0.path, to: 3) }
    }
    try devices[1].run("UPDATE note SET stars = 4")
    try converge(devices, "SELECT body, color, stars FROM note", ["a|none|4"])
  }

  /// The table of migrations has another form there, and the whole store has other rows.
  @Test(arguments: [0, 1]) func aTableOfAnotherFormIsTakenOver(by index: Int) throws {
    var configuration = StoreConfiguration()
    configuration.schemaTables = ["versions"]
    configuration.excludedTables = ["trail"]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE versions (number INTEGER PRIMARY KEY, note);
      CREATE TABLE trail (what);
      CREATE TRIGGER v_ai AFTER INSERT ON versions BEGIN INSERT INTO trail VALUES (NEW.number); END;
      CREATE TABLE t (k TEXT PRIMARY KEY); INSERT INTO versions VALUES (1, 'a');
      """, configuration: configuration)
    try devices[0].run(
      """
      DROP TABLE versions; CREATE TABLE versions (number INTEGER PRIMARY KEY, name NOT NULL);
      CREATE TRIGGER v_ai AFTER INSERT ON versions BEGIN INSERT INTO trail VALUES (NEW.number); END;
      INSERT INTO versions VALUES (1, 'one'), (2, 'two');
      """)
    let whole = try snapshot(devices[1 - index], "whole")
    _ = try devices[index].store.replaceContent(withSnapshotAt: whole)
    for query in [
      "SELECT * FROM versions", "SELECT sql FROM sqlite_schema WHERE name = 'versions'",
      "SELECT sql FROM sqlite_schema WHERE name = 'v_ai'",
    ] {
      #expect(try devices[index].rows(query) == devices[1 - index].rows(query))
    }
    #expect(try devices[index].rows("SELECT count(*) FROM versions") == [index == 0 ? "1" : "2"])
    #expect(try devices[index].rows("SELECT * FROM sqlite_schema WHERE name = 'v_ai'").count == 1)
  }

  /// A migration that only adds a table was made in a database that joins.
  @Test func aDatabaseThatJoinsBringsItsMigrations() throws {
    let schema = """
      CREATE TABLE django_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, app TEXT, name TEXT);
      CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
      CREATE TABLE knex_migrations_lock ("index" INTEGER PRIMARY KEY, is_locked INTEGER);
      CREATE TABLE t (k TEXT PRIMARY KEY);
      INSERT INTO django_migrations VALUES (1, 'a', '1'); INSERT INTO alembic_version VALUES ('v1');
      INSERT INTO knex_migrations_lock VALUES (1, 1);
      """
    let first = try scratch.devices(1, schema)[0]
    try first.run("INSERT INTO django_migrations VALUES (2, 'b', '1')")
    let path = scratch.path + "/joining.db"
    try Program(path).run(
      schema + """
        CREATE TABLE tag (name TEXT PRIMARY KEY); INSERT INTO tag VALUES ('red');
        CREATE TABLE "SequelizeMeta" (name VARCHAR(255) PRIMARY KEY);
        INSERT INTO "SequelizeMeta" VALUES ('one.js');
        INSERT INTO django_migrations VALUES (2, 'a', '2');
        """)
    let whole = try snapshot(first, "whole")
    #expect(try Program(whole).rows("SELECT is_locked FROM knex_migrations_lock") == ["0"])
    let (store, merged) = try LocalStore.adopt(
      snapshotAt: whole, mergingDatabaseAt: path, binding: scratch.binding("joined"))
    let device = try Device(store: store, path: whole)
    #expect(merged.newTables == ["SequelizeMeta", "tag"])
    #expect(
      try device.rows("SELECT app || name FROM django_migrations ORDER BY id")
        == ["a1", "b1", "a2"])
    #expect(try device.rows("SELECT * FROM alembic_version") == ["v1"])
    #expect(try device.rows("SELECT * FROM SequelizeMeta") == ["one.js"])
    #expect(try device.rows("SELECT is_locked FROM knex_migrations_lock") == ["0"])
    try first.receive(from: device)
    #expect(try first.store.status().unknownNames == ["tag"])
  }

  @Test func aTableThatIsExcludedStaysOutOfWholeStores() throws {
    var configuration = StoreConfiguration()
    configuration.excludedTables = ["grdb_migrations"]
    let devices = try devices(2, configuration: configuration)
    #expect(try devices[0].rows(migrations) == ["v1 notes"])
    #expect(try devices[1].rows(migrations) == [])
    #expect(try devices[0].store.status().leftOut == ["grdb_migrations": .excluded])
  }

  @Test func aTableOfTheUserWithSuchANameIsSynchronized() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE migrations (species TEXT PRIMARY KEY, season TEXT);
      CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
      CREATE TABLE __efmigrationshistory (MigrationId TEXT PRIMARY KEY, ProductVersion TEXT);
      """)
    let status = try devices[0].store.status()
    #expect(status.tables.map(\.name) == ["migrations"])
    #expect(status.leftOut == ["Z_METADATA": .schema, "__efmigrationshistory": .schema])
    try devices[0].run("INSERT INTO migrations VALUES ('stork', 'autumn')")
    try converge(devices, "SELECT * FROM migrations", ["stork|autumn"])
  }

  @Test func thePageListsTheTables() throws {
    let page = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Documentation/Schemas.md").standardized
    let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
    let start = try #require(lines.firstIndex(of: "| table | columns | framework |"))
    let listed = lines[(start + 2)...].prefix { $0.hasPrefix("|") }
    #expect(listed.count == SchemaTables.known.count)
    for table in SchemaTables.known {
      let columns = table.columns.joined(separator: ", ")
      #expect(listed.contains { $0.hasPrefix("| \(table.table) | \(columns) | ") }, "\(table)")
    }
  }

  @Test func theConfigurationNamesFurtherTables() throws {
    var configuration = StoreConfiguration()
    configuration.schemaTables = ["VERSIONS"]
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE versions (number); CREATE TABLE t (k TEXT PRIMARY KEY);
      INSERT INTO versions VALUES (7);
      """, configuration: configuration)
    #expect(try devices[1].rows("SELECT number FROM versions") == ["7"])
    #expect(devices[1].store.configuration.schemaTables == ["VERSIONS"])
    try devices[0].run("INSERT INTO versions VALUES (8); INSERT INTO t VALUES ('a')")
    try converge(devices, "SELECT k FROM t", ["a"])
    #expect(try devices[1].rows("SELECT number FROM versions") == ["7"])
    configuration.schemaTables = ["version"]
    let path = scratch.path + "/other.db"
    try Program(path).run("CREATE TABLE versions (number)")
    let error = #expect(throws: StoreError.self) {
      try LocalStore.create(
        at: path, binding: scratch.binding("other"), configuration: configuration)
    }
    #expect(error?.code == .badConfiguration)
  }

  /// Earlier builds synchronized these tables.
  @Test func aTableThatWasSynchronizedStaysOnTheDeviceFromNowOn() throws {
    var devices = try scratch.devices(
      3,
      """
      CREATE TABLE applied (identifier TEXT NOT NULL PRIMARY KEY); INSERT INTO applied VALUES ('v1');
      CREATE TABLE t (k TEXT PRIMARY KEY, v);
      """)
    let rename = "ALTER TABLE applied RENAME TO grdb_migrations"
    try devices[0].run("INSERT INTO applied VALUES ('v2'); INSERT INTO t VALUES ('a', 1)")
    let whole = try snapshot(devices[0], "whole")
    let program = try Program(whole)
    try program.run(
      """
      \(rename);
      UPDATE docsync_table SET name = 'grdb_migrations', wire = 'grdb_migrations'
        WHERE name = 'applied'
      """)
    for index in [1, 2] {
      devices[index] = try devices[index].changed(isOpen: index == 1) { try $0.run(rename) }
    }
    // An earlier build sends the table under its name.
    var received = try devices[0].outgoing()
    for index in received.indices {
      for table in received[index].changeSet.tables.indices
      where received[index].changeSet.tables[table].table == "applied" {
        received[index].changeSet.tables[table].table = "grdb_migrations"
      }
    }
    _ = try devices[1].store.apply(received)
    #expect(try devices[1].rows("SELECT * FROM grdb_migrations") == ["v1"])
    #expect(try devices[1].rows("SELECT * FROM t") == ["a|1"])
    #expect(try devices[1].store.status().unknownNames == [])
    try devices[1].run("INSERT INTO grdb_migrations VALUES ('own'); UPDATE t SET v = 2")
    #expect(try devices[1].changes().map(\.table) == ["t"])
    #expect(try LocalStore.verify(at: devices[1].path).report.findings == [])

    // A whole store of an earlier build, in which the table is synchronized.
    _ = try devices[2].store.replaceContent(withSnapshotAt: whole)
    #expect(try devices[2].rows("SELECT * FROM grdb_migrations ORDER BY 1") == ["v1", "v2"])
    #expect(try devices[2].store.status().tables.map(\.name) == ["t"])
    try devices[2].run("INSERT INTO grdb_migrations VALUES ('own'); UPDATE t SET v = 3")
    #expect(try devices[2].changes().map(\.table) == ["t"])
    let joined = try Device(
      store: LocalStore.adopt(snapshotAt: whole, binding: scratch.binding("joined")), path: whole)
    #expect(try joined.rows("SELECT * FROM grdb_migrations ORDER BY 1") == ["v1", "v2"])
    try joined.receive(from: devices[1], devices[2])
    #expect(try joined.rows("SELECT * FROM t") == ["a|3"])
    for device in [devices[2], joined] {
      try device.checkIntegrity()
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
    }
  }
}
