import DocumentSyncTesting
import GRDB
import SyncDirectory
import SyncModel
import SyncStore
import Testing

@testable import DocumentSync

/// A change set is undone by ordinary edits.
@Suite struct UndoTests {
  private typealias Undo = AppliedChangeSet.Undo

  private static let schema = """
    CREATE TABLE list(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE item(
      id INTEGER PRIMARY KEY, list INTEGER NOT NULL REFERENCES list ON DELETE CASCADE ON UPDATE CASCADE, title TEXT,
      parent INTEGER REFERENCES item ON DELETE SET NULL, views INTEGER NOT NULL DEFAULT 0, seen TEXT);
    CREATE TABLE label(
      name TEXT PRIMARY KEY, parent TEXT REFERENCES label ON UPDATE CASCADE ON DELETE CASCADE, color TEXT);
    CREATE TABLE labelling(
      item INTEGER REFERENCES item ON DELETE CASCADE,
      label TEXT REFERENCES label ON UPDATE CASCADE ON DELETE CASCADE, PRIMARY KEY (item, label))
      WITHOUT ROWID;
    CREATE TABLE mention(id INTEGER PRIMARY KEY, name TEXT REFERENCES list(name));
    """

  /// Two devices that share lists.
  private struct Pair {
    let scratch: Scratch
    let memory = MemoryDirectory(seed: 1)
    let managers: [DocumentSyncManager]
    private let databases: [DatabaseQueue]

    init() async throws {
      scratch = try Scratch()
      let first = try DatabaseQueue(path: scratch.store("0"))
      try await first.write {
        try $0.execute(
          sql: UndoTests.schema + """
            INSERT INTO list VALUES (1, 'home'), (2, 'work'), (3, 'spare'); INSERT INTO mention VALUES (1, 'spare');
            INSERT INTO item VALUES (1, 1, 'milk', NULL, 3, 'x'), (2, 1, 'oat', 1, 0, 'y'), (3, 2, 'mail', NULL, 9, 'z');
            INSERT INTO label VALUES ('red', NULL, '#f00'), ('pink', 'red', '#fcc');
            INSERT INTO labelling VALUES (1, 'red'), (2, 'pink');
            """)
      }
      var configuration = StoreConfiguration()
      configuration.columnMergeTypes["item"] = ["views": .counter]
      configuration.excludedColumns["item"] = ["seen"]
      managers = try await scratch.share(through: memory, configuration: configuration)
      databases = [first, try DatabaseQueue(path: scratch.store("1"))]
    }

    subscript(index: Int) -> DocumentSyncManager { managers[index] }

    /// Edits as the application of a device, and synchronizes it; returns the number of its last change set.
    @discardableResult
    func edit(_ device: Int, _ sql: String) async throws -> UInt64 {
      try await databases[device].write { try $0.execute(sql: sql) }
      try await managers[device].synchronize()
      return try #require(try managers[device].store.head()?.number)
    }

    /// Edits without synchronizing.
    func editOnly(_ device: Int, _ sql: String) throws {
      try databases[device].write { try $0.execute(sql: sql) }
    }

    func settle() async throws {
      for _ in 0..<2 { for manager in managers { try await manager.synchronize() } }
    }

    /// The rows of all tables of a device, as text, without what stays on the device.
    func rows(_ device: Int, _ tables: String = "list,item,label,labelling,mention") throws
      -> [String]
    {
      try databases[device].read { database in
        try tables.split(separator: ",").flatMap { table in
          try Row.fetchAll(database, sql: "SELECT * FROM \(table) ORDER BY 1, 2").map { row in
            "\(table): "
              + row.filter { $0.0 != "seen" }.map { "\($0.1)" }.joined(separator: " ")
          }
        }
      }
    }

    func value(_ device: Int, _ sql: String) throws -> String? {
      try databases[device].read { try String.fetchOne($0, sql: sql) }
    }
  }

  // MARK: - What comes back

  private static let edits = [
    "DELETE FROM list WHERE id = 1",
    "DELETE FROM item",
    "DELETE FROM label WHERE name = 'red'",
    "UPDATE item SET title = title || '!', list = 2 WHERE id < 3",
    "UPDATE label SET name = 'crimson' WHERE name = 'red'",
    "UPDATE list SET id = 7 WHERE id = 2; UPDATE list SET name = 'house' WHERE id = 1",
    "INSERT INTO list VALUES (9, 'new'); INSERT INTO item(id, list, title) VALUES (8, 9, 'a'), (9, 9, 'b'); "
      + "UPDATE item SET parent = 9 WHERE id = 8; INSERT INTO labelling VALUES (8, 'red')",
    "INSERT OR REPLACE INTO list VALUES (1, 'work')",
    "UPDATE item SET views = views + 5; UPDATE item SET views = 0 WHERE id = 3",
    "DELETE FROM item WHERE id = 1; INSERT INTO item(id, list, title) VALUES (1, 2, 'other')",
    "PRAGMA defer_foreign_keys = ON; DELETE FROM list WHERE id = 3; INSERT INTO list VALUES (8, 'spare')",
    "UPDATE item SET parent = NULL; DELETE FROM labelling; UPDATE label SET parent = NULL, color = NULL",
  ]

  @Test(arguments: edits, [0, 1])
  func everyRowComesBack(sql: String, device: Int) async throws {
    let pair = try await Pair()
    let before = try pair.rows(0)
    let first = try pair[0].store.head()?.number ?? 0
    let last = try await pair.edit(0, sql)
    try await pair.settle()
    #expect(try pair.rows(0) != before)
    for number in (first + 1...last).reversed() {
      let undo = try await pair[device].undoChangeSet(number, of: pair[0].binding.client)
      #expect(undo.leftRows == [] && undo.leftCount == 0)
      #expect(undo.rowCount > 0)
      try await pair[device].synchronize()
    }
    try await pair.settle()
    #expect(try pair.rows(0) == before)
    #expect(try pair.rows(1) == before)
    let digests = [try await pair[0].digest(), try await pair[1].digest()]
    #expect(digests[0] == digests[1])
    for manager in pair.managers { #expect(try await manager.verify().findings == []) }
  }

  /// Rows exchange values that must be unique, as lists do whose rows have positions.
  @Test(
    arguments: [
      "position INTEGER NOT NULL UNIQUE CHECK (position >= 0)", "position INTEGER UNIQUE",
      "position REAL NOT NULL UNIQUE", "position TEXT NOT NULL UNIQUE",
      "position INTEGER NOT NULL, UNIQUE (list, position)",
    ], ["", "STRICT", "WITHOUT ROWID"])
  func rowsExchangeTheirPlaces(column: String, kind: String) async throws {
    let scratch = try Scratch()
    let first = try DatabaseQueue(path: scratch.store("0"))
    try await first.write {
      try $0.execute(
        sql: "CREATE TABLE step (id INTEGER PRIMARY KEY, list TEXT, \(column)) \(kind);"
          + "INSERT INTO step (id, list, position) VALUES (1, 'a', 10), (2, 'a', 11), (3, 'a', 12), (4, 'a', 13)"
      )
    }
    let managers = try await scratch.share(
      through: MemoryDirectory(seed: 1), configuration: StoreConfiguration())
    func rows(_ index: Int) throws -> [String] {
      let queue = try DatabaseQueue(path: scratch.store("\(index)"))
      defer { #expect(throws: Never.self) { try queue.close() } }
      return try queue.read {
        try String.fetchAll(
          $0, sql: "SELECT id || ' ' || list || ' ' || position FROM step ORDER BY id")
      }
    }
    let before = try rows(0)
    // The last row goes to the beginning, and the others follow; one gets another list.
    try await first.write {
      try $0.execute(
        sql:
          "UPDATE step SET position = 30 + id; UPDATE step SET position = 11 + id WHERE id < 4 AND id > 1;"
          + "UPDATE step SET position = 11 WHERE id = 1; UPDATE step SET position = 10, list = 'b' WHERE id = 4"
      )
    }
    for manager in managers { try await manager.synchronize() }
    let number = try #require(try managers[0].store.head()?.number)
    #expect(try rows(1) != before)
    let undo = try await managers[1].undoChangeSet(number, of: managers[0].binding.client)
    #expect(undo.leftRows == [])
    #expect(undo.rowCount == 4)
    for _ in 0..<2 { for manager in managers { try await manager.synchronize() } }
    #expect(try rows(0) == before)
    #expect(try rows(1) == before)
    for manager in managers { #expect(try await manager.verify().findings == []) }
  }

  /// New rows refer to themselves and to each other.
  @Test func rowsThatReferToEachOtherComeBack() async throws {
    let pair = try await Pair()
    _ = try await pair.edit(
      0,
      """
      INSERT INTO item(id, list, title) VALUES (11, 1, 'a'), (12, 1, 'b'), (13, 1, 'c');
      UPDATE item SET parent = 12 WHERE id = 11; UPDATE item SET parent = 11 WHERE id = 12;
      UPDATE item SET parent = 13 WHERE id = 13; INSERT INTO labelling VALUES (11, 'red'), (13, 'pink');
      INSERT INTO item(id, list, title, parent) VALUES (14, 2, 'd', 13);
      """)
    try await pair.settle()
    let before = try [0, 1].map { try pair.rows($0) }
    let number = try await pair.edit(0, "DELETE FROM item WHERE id > 10")
    try await pair.settle()
    let undo = try await pair[1].undoChangeSet(number, of: pair[0].binding.client)
    #expect(undo.leftRows == [])
    #expect(undo.rowCount == 6)
    try await pair.settle()
    #expect(try [0, 1].map { try pair.rows($0) } == before)
    for manager in pair.managers { #expect(try await manager.verify().findings == []) }
  }

  /// A row is deleted, and another one gets its key.
  @Test(arguments: [false, true]) func aRowThatTookTheKeyOfADeletedOneGetsItsOwnBack(
    isEdited: Bool
  ) async throws {
    let pair = try await Pair()
    try await pair.edit(0, "INSERT INTO label VALUES ('blue', NULL, '#00f')")
    try await pair.edit(0, "INSERT INTO labelling VALUES (3, 'blue')")
    try await pair.settle()
    let before = try pair.rows(0)
    let number = try await pair.edit(
      0, "DELETE FROM label WHERE name = 'pink'; UPDATE label SET name = 'pink' WHERE name = 'blue'"
    )
    if isEdited { try await pair.edit(0, "UPDATE label SET color = '#00e' WHERE name = 'pink'") }
    let undo = try await pair[0].undoChangeSet(number)
    try await pair.settle()
    if isEdited {
      // It is not there twice.
      #expect(undo.leftRows.contains { $0.reason == .changedSince })
      #expect(
        try pair.value(1, "SELECT group_concat(color) FROM (SELECT * FROM label ORDER BY name)")
          == "#00e,#f00")
    } else {
      #expect(undo.leftRows == [])
      #expect(try [0, 1].map { try pair.rows($0) } == [before, before])
    }
    for manager in pair.managers { #expect(try await manager.verify().findings == []) }
  }

  @Test func undoingTwiceChangesNothingMore() async throws {
    let pair = try await Pair()
    let number = try await pair.edit(0, "DELETE FROM item WHERE id < 3")
    #expect(try await pair[0].undoChangeSet(number).rowCount == 4)
    let rows = try pair.rows(0)
    let again = try await pair[0].undoChangeSet(number)
    #expect(again.rowCount == 0)
    #expect(try pair.rows(0) == rows)
    // What undoing has done can be undone in turn.
    try await pair[0].synchronize()
    let undone = try #require(try pair[0].store.head()?.number)
    #expect(undone > number)
    #expect(try await pair[0].undoChangeSet(undone).tables.map(\.deletedRows).reduce(0, +) == 4)
    try await pair.settle()
    #expect(try pair.value(1, "SELECT group_concat(id) FROM item") == "3")
  }

  /// Rows refer by its number to a row that is identified by declared columns, in their keys.
  @Test func rowsThatContainADeclaredRowInTheirKeysAreDeletedWithIt() async throws {
    let scratch = try Scratch()
    let database = try DatabaseQueue(path: scratch.store("0"))
    try await database.write {
      try $0.execute(
        sql: """
          CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
          CREATE TABLE profile(
            person INTEGER PRIMARY KEY REFERENCES person ON DELETE CASCADE, text TEXT);
          CREATE TABLE word(
            person INTEGER NOT NULL REFERENCES person ON DELETE CASCADE, word TEXT,
            PRIMARY KEY (person, word));
          INSERT INTO person VALUES (1, 'Ann');
          """)
    }
    var configuration = StoreConfiguration()
    configuration.identities["person"] = .columns(["name"])
    let managers = try await scratch.share(
      through: MemoryDirectory(seed: 1), configuration: configuration)
    func settle() async throws {
      for _ in 0..<3 { for manager in managers { try await manager.synchronize() } }
    }
    try await database.write {
      try $0.execute(
        sql: """
          INSERT INTO person VALUES (2, 'Eve'); INSERT INTO profile VALUES (2, 'of Eve');
          INSERT INTO word VALUES (2, 'w');
          """)
    }
    try await settle()
    let number = try #require(try managers[0].store.head()?.number)
    #expect(try await managers[0].undoChangeSet(number).leftRows == [])
    try await settle()
    try await database.write { try $0.execute(sql: "INSERT INTO person VALUES (7, 'Eve')") }
    try await settle()
    for manager in managers {
      #expect(try await manager.verify().findings == [])
      #expect(try await manager.parkedRows() == [])
      #expect(
        try await DatabaseQueue(path: manager.path).read {
          try String.fetchAll(
            $0,
            sql: "SELECT name FROM person UNION ALL SELECT text FROM profile "
              + "UNION ALL SELECT word FROM word ORDER BY 1")
        } == ["Ann", "Eve"])
    }
    #expect(Set(try managers.map { try $0.store.digest() }).count == 1)
  }

  @Test func aRehearsalChangesNothing() async throws {
    let pair = try await Pair()
    let number = try await pair.edit(
      0, "DELETE FROM list WHERE id = 1; UPDATE list SET name = 'w' WHERE id = 2")
    try pair.editOnly(0, "INSERT INTO list VALUES (5, 'unsent')")
    let (rows, digest) = (try pair.rows(0), try await pair[0].digest())
    let status = try await pair[0].status()
    let rehearsed = try await pair[0].undoChangeSet(number, isRehearsal: true)
    #expect(try pair.rows(0) == rows)
    #expect(try await pair[0].digest() == digest)
    #expect(try await pair[0].status() == status)
    #expect(try await pair[0].undoChangeSet(number) == rehearsed)
    #expect(try pair.rows(0) != rows)
    #expect(
      rehearsed.tables.map { "\($0.name) \($0.insertedRows) \($0.updatedRows) \($0.deletedRows)" }
        == ["item 2 0 0", "labelling 2 0 0", "list 1 1 0"])
  }

  // MARK: - What was changed since

  @Test func whatWasChangedSinceStays() async throws {
    let pair = try await Pair()
    let number = try await pair.edit(
      0,
      """
      UPDATE item SET title = 'A', parent = 3 WHERE id IN (1, 2); INSERT INTO list VALUES (4, 'x'), (5, 'y');
      DELETE FROM label WHERE name = 'pink'; INSERT INTO label VALUES ('blue', NULL, '#00f')
      """)
    try await pair.settle()
    try await pair.edit(
      1,
      """
      UPDATE item SET title = 'B' WHERE title = 'A' AND views = 3;
      UPDATE list SET name = 'z' WHERE name = 'y'; INSERT INTO label VALUES ('pink', NULL, 'again');
      DELETE FROM label WHERE name = 'blue'
      """)
    try await pair.settle()
    // Edits that are not sealed yet count, too.
    try pair.editOnly(0, "UPDATE item SET parent = NULL WHERE id = 2")
    let undo = try await pair[0].undoChangeSet(number)
    #expect(
      Set(undo.leftRows.map { "\($0.table) \($0.columns) \($0.reason)" }) == [
        "item [title] changedSince", "item [parent] changedSince", "list [] changedSince",
        "label [parent, color] changedSince",
      ])
    #expect(undo.leftCount == undo.leftRows.count)
    #expect(
      try pair.value(0, "SELECT group_concat(title || ifnull(parent, '')) FROM item")
        == "B,oat,mail")
    #expect(try pair.value(0, "SELECT group_concat(name) FROM list WHERE id > 3") == "z")
    #expect(try pair.value(0, "SELECT color FROM label WHERE name = 'pink'") == "again")
    #expect(try pair.value(0, "SELECT color FROM label WHERE name = 'blue'") == nil)
    try await pair.settle()
    #expect(try pair.rows(0, "list,label") == pair.rows(1, "list,label"))
  }

  /// A counter is set back if nothing was added since; others may have added at the same time.
  @Test func aCounterIsSetBackOnce() async throws {
    let pair = try await Pair()
    let views = "SELECT views FROM item WHERE title = 'milk'"
    let first = try await pair.edit(0, "UPDATE item SET views = views + 5 WHERE id = 1")
    try await pair.settle()
    for count in [1, 0] {
      #expect(try await pair[1].undoChangeSet(first, of: pair[0].binding.client).rowCount == count)
      try await pair.settle()
      #expect(try pair.value(0, views) == "3")
    }
    try pair.editOnly(1, "UPDATE item SET views = views + 100 WHERE title = 'milk'")
    let second = try await pair.edit(0, "UPDATE item SET views = views + 20 WHERE id = 1")
    let third = try await pair.edit(0, "UPDATE item SET views = views + 1 WHERE id = 1")
    try await pair.settle()
    let early = try await pair[1].undoChangeSet(second, of: pair[0].binding.client)
    #expect(early.leftRows.map(\.columns) == [["views"]] && early.rowCount == 0)
    for (number, result) in [(third, "123"), (second, "103")] {
      let undo = try await pair[1].undoChangeSet(number, of: pair[0].binding.client)
      #expect(undo.rowCount == 1 && undo.leftCount == 0)
      try await pair.settle()
      #expect(try pair.value(0, views) == result)
      #expect(try pair.value(1, views) == result)
    }
  }

  @Test func whatAConstraintRefusesStays() async throws {
    let pair = try await Pair()
    let number = try await pair.edit(
      0,
      """
      UPDATE list SET name = 'garden' WHERE id = 1; DELETE FROM item WHERE id = 3;
      INSERT INTO list VALUES (4, 'new'); INSERT INTO label VALUES ('blue', NULL, NULL)
      """)
    try await pair.edit(
      0,
      """
      INSERT INTO list VALUES (30, 'home'); DELETE FROM list WHERE id = 2;
      INSERT INTO item (id, list, title) VALUES (9, 4, 'in new')
      """)
    let undo = try await pair[0].undoChangeSet(number)
    #expect(undo.leftRows.map(\.reason) == [.refused, .refused, .refused])
    #expect(undo.leftRows.map(\.columns).contains(["name"]))
    #expect(
      undo.leftRows.map(\.message).sorted() == [
        "A row of item refers to it.",
        "Another row already has this value, which must be unique: list.name.",
        "The row of list that it refers to does not exist.",
      ])
    #expect(undo.tables.map { "\($0.name) \($0.deletedRows)" } == ["label 1"])
    #expect(
      try pair.value(0, "SELECT group_concat(name) FROM (SELECT name FROM list ORDER BY name)")
        == "garden,home,new,spare")
    #expect(try pair.value(0, "SELECT group_concat(title) FROM item WHERE id > 2") == "in new")
  }

  /// Rows that refer to nothing stay away, also where others have to wait for one another.
  @Test func whatRefersToNothingStaysAway() async throws {
    let pair = try await Pair()
    let number = try await pair.edit(
      0, "UPDATE list SET name = 'garden' WHERE id = 1; DELETE FROM item WHERE id = 3")
    try await pair.edit(0, "INSERT INTO list VALUES (30, 'home'); DELETE FROM list WHERE id = 2")
    let undo = try await pair[0].undoChangeSet(number)
    #expect(undo.leftRows.map(\.reason) == [.refused, .refused] && undo.rowCount == 0)
    #expect(try pair.value(0, "SELECT count(*) FROM item WHERE id = 3") == "0")
  }

  /// A row to which others refer by now stays, also where others have to wait for one another.
  @Test func whatOthersReferToStays() async throws {
    let pair = try await Pair()
    let number = try await pair.edit(
      0, "UPDATE list SET name = 'garden' WHERE id = 1; INSERT INTO list VALUES (4, 'new')")
    try await pair.edit(
      0,
      "INSERT INTO list VALUES (30, 'home'); INSERT INTO item (id, list, title) VALUES (9, 4, 'in new')"
    )
    let undo = try await pair[0].undoChangeSet(number)
    #expect(undo.leftRows.map(\.reason) == [.refused, .refused] && undo.rowCount == 0)
    #expect(try pair.value(0, "SELECT name FROM list WHERE id = 4") == "new")
    #expect(try await pair[0].verify().findings == [])
  }

  /// A value by which others refer to a row stays, and so does a row under its new key that was edited since.
  @Test func whatOthersReferToByItsValueStays() async throws {
    let pair = try await Pair()
    let number = try await pair.edit(
      0,
      "UPDATE list SET name = 'depot' WHERE id = 2; UPDATE label SET name = 'crimson' WHERE name = 'red'"
    )
    try await pair.edit(
      0,
      "INSERT INTO mention VALUES (2, 'depot'); UPDATE label SET color = '#a00' WHERE name = 'crimson'"
    )
    let undo = try await pair[0].undoChangeSet(number)
    #expect(
      Set(undo.leftRows.map { "\($0.table) \($0.columns) \($0.reason)" }).isSuperset(of: [
        "list [name] refused", "label [] changedSince",
      ]))
    #expect(try pair.value(0, "SELECT name FROM list WHERE id = 2") == "depot")
    #expect(try pair.value(0, "SELECT count(*) FROM label WHERE name IN ('red', 'crimson')") == "1")
    #expect(try await pair[0].verify().findings == [])
  }

  /// A hidden row stays, and is named.
  @Test func aHiddenRowStays() async throws {
    let pair = try await Pair()
    try pair.editOnly(1, "INSERT INTO list VALUES (70, 'twin')")
    let number = try await pair.edit(0, "INSERT INTO list VALUES (80, 'twin')")
    try await pair.settle()
    let other = try #require(try pair[1].store.head()?.number)
    #expect(try await pair[0].parkedRows().count == 1)
    var reasons: [Undo.Reason] = []
    for (number, author) in [(number, pair[0]), (other, pair[1])] {
      let undo = try await pair[0].undoChangeSet(
        number, of: author.binding.client, isRehearsal: true)
      reasons += undo.leftRows.map(\.reason)
      #expect(undo.rowCount + undo.leftCount == 1)
    }
    #expect(reasons == [.hidden])
  }

  // MARK: - Other circumstances

  /// A store from before a migration knows the values of a column that it lacks.
  @Test func valuesOfLaterColumnsComeBack() async throws {
    let pair = try await Pair()
    let change = """
      ALTER TABLE item ADD COLUMN due TEXT; ALTER TABLE item ADD COLUMN rank INTEGER NOT NULL DEFAULT 7;
      CREATE TABLE place(id INTEGER PRIMARY KEY, item INTEGER REFERENCES item ON DELETE CASCADE, name TEXT)
      """
    for device in [0, 1] { try pair.editOnly(device, change) }
    try await pair.edit(
      0,
      "UPDATE item SET due = 'today' WHERE id < 3; INSERT INTO place VALUES (4, 2, 'shop'), (5, 3, 'desk')"
    )
    try await pair.settle()
    let before = try pair.rows(0) + pair.rows(0, "place")
    let number = try await pair.edit(
      0,
      "UPDATE item SET due = 'later', rank = 1 WHERE id = 3; DELETE FROM item WHERE id < 3; DELETE FROM place"
    )
    try await pair.settle()
    #expect(try await pair[1].undoChangeSet(number, of: pair[0].binding.client).leftRows == [])
    try await pair.settle()
    #expect(try pair.rows(0) + pair.rows(0, "place") == before)
    #expect(try pair.rows(1) + pair.rows(1, "place") == before)
  }

  @Test func changeSetsInSegmentsAreUndone() async throws {
    let fleet = try await TestFleet(2) { environment in
      environment.thresholds.looseCount = 4
      environment.thresholds.tailCount = 1
      environment.thresholds.ownInterval = 1
    }
    for number in 0..<12 {
      try fleet[0].put("a\(number)", "one")
      try await fleet.settle()
    }
    for _ in 0..<2 {
      for device in 0...1 { try await fleet[device].vacuum() }
      try await fleet.settle()
    }
    #expect(!fleet.changeSets(of: 0).contains { $0.name.hasPrefix("3.") })
    #expect(fleet.changeSets(of: 0).contains { $0.name.hasSuffix(".segment") })
    let undo = try await fleet[1].undoChangeSet(3, of: fleet[0].binding.client)
    #expect(undo.tables.map(\.deletedRows) == [1])
    #expect(try !fleet[1].notes().contains("a2=one"))
  }

  @Test func whatTheDirectoryHasNoLongerIsNotUndone() async throws {
    let fleet = try await TestFleet(2)
    try fleet[0].put("a", "one")
    try await fleet.settle()
    try fleet[0].put("a", "two")
    try await fleet.settle()
    for device in 0...1 {
      for number in [0, 3, 77, UInt64.max] {
        let error = await syncError {
          try await fleet[device].undoChangeSet(number, of: fleet[0].binding.client)
        }
        #expect(error?.code == .changeSetUnavailable)
        #expect(error?.message == "This device has not applied such a change set.")
      }
    }
    let former = fleet.paths { $0.components.contains("WholeStore") }
    #expect(try await fleet[0].undoChangeSet(1, isRehearsal: true).leftCount == 1)
    try await fleet[1].uploadWholeStore()
    for path in former { fleet.memory.take(path) }
    let notes = try fleet[0].notes()
    for number in 1...2 as ClosedRange<UInt64> {
      let error = await syncError { try await fleet[0].undoChangeSet(number) }
      #expect(error?.code == .changeSetUnavailable)
      #expect(error?.message.contains("does not have any more") == true)
    }
    #expect(try fleet[0].notes() == notes)
    #expect(try fleet.scratch.names().allSatisfy { !$0.contains("docsync-tmp") })
  }

  /// Without the change sets on which it depends, what there was before a change set is not known.
  @Test func whatADependencyHasChangedMustBeKnown() async throws {
    let fleet = try await TestFleet(2)
    for text in ["one", "two", "three"] {
      try fleet[0].put("a", text)
      try await fleet.settle()
    }
    try fleet[1].put("a", "four")
    try await fleet.settle()
    let author = fleet[0].binding.client
    #expect(try await fleet[1].undoChangeSet(3, of: author, isRehearsal: true).leftCount == 1)
    fleet.memory.take(fleet.changeSets(of: 0)[1])
    for (number, author) in [(3, author), (1, fleet[1].binding.client)]
      as [(UInt64, ClientIdentifier)]
    {
      let error = await syncError {
        try await fleet[1].undoChangeSet(number, of: author, isRehearsal: true)
      }
      #expect(error?.code == .changeSetUnavailable)
    }
    // So must be what others have changed meanwhile.
    try fleet[0].put("b", "left")
    try fleet[1].put("b", "right")
    for device in [0, 1, 0, 1] { try await fleet[device].synchronize() }
    fleet.memory.take(fleet.changeSets(of: 1)[1])
    let error = await syncError { try await fleet[0].undoChangeSet(4, isRehearsal: true) }
    #expect(error?.code == .changeSetUnavailable)
    // The author still has it.
    #expect(try await fleet[0].undoChangeSet(3).leftCount == 1)
  }

  /// A change set that was not sent is undone as well.
  @Test func unsentChangeSetsAreUndone() async throws {
    let pair = try await Pair()
    try await pair.settle()
    try pair.editOnly(0, "UPDATE item SET title = 'changed'")
    _ = try pair[0].store.seal()
    let number = try #require(try pair[0].store.head()?.number)
    #expect(try pair[0].store.outbox().own.contains { !$0.isPublished })
    #expect(try await pair[0].undoChangeSet(number).tables.map(\.updatedRows) == [3])
    #expect(try pair.value(0, "SELECT group_concat(title) FROM item") == "milk,oat,mail")
    try await pair.settle()
    #expect(try pair.rows(0) == pair.rows(1))
  }

  @Test func cancellingLeavesEverythingAsItIsOrUndoesAll() async throws {
    try await Cancelling.sweep(least: 5) { fleet in
      try fleet[1].edit("DELETE FROM notes")
      try await fleet.settle()
    } make: { fleet, directory in
      let manager = fleet[1]
      return UndoOperation(
        1, of: manager.binding.client, isRehearsal: false, store: manager.store,
        directory: directory,
        turns: manager.turns, environment: manager.environment)
    } check: { fleet, result in
      let count = try fleet[1].notes().count
      switch result {
      case .success(let undo): #expect(undo.rowCount == 2 && count == 2)
      case .failure: #expect(count == 0)
      }
      #expect(try await fleet[1].undoChangeSet(1).leftCount == 0)
      #expect(try fleet[1].notes().count == 2)
    }
  }

  /// Random edits of tables of all kinds are undone, from the last change set to the first one. What was edited
  /// may have let a hidden row appear; then that can be in the way.
  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func randomEditsAreUndone(seed: UInt64) async throws {
    let pair = try await RowChangesTests.Pair()
    var random = SeededRandom(seed: seed)
    func edit(_ device: Int, _ count: Int) throws {
      for _ in 0..<count {
        let (sql, arguments) = RowChangesTests.randomEdit(&random)
        try pair.edit(device, sql, arguments)
      }
    }
    func settle() async throws {
      for _ in 0..<2 { for manager in pair.managers { try await manager.synchronize() } }
    }
    for _ in 0..<3 {
      for device in 0...1 {
        try edit(device, 15)
        try await pair.managers[device].synchronize()
      }
    }
    var undone = 0
    for _ in 0..<4 {
      try await settle()
      let author = pair.managers[Int.random(in: 0...1, using: &random)]
      let actor = pair.managers[Int.random(in: 0...1, using: &random)]
      let before = try await pair.managers[0].digest().visible
      let rows = try pair.rows(0)
      var hidden = try await pair.managers[0].parkedRows().count
      let first = try author.store.head()?.number ?? 0
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        try edit(
          author === pair.managers[0] ? 0 : 1, Int.random(in: 1...6, using: &random))
        try await author.synchronize()
      }
      try await actor.synchronize()
      let last = try author.store.head()?.number ?? 0
      var left: [AppliedChangeSet.Undo.LeftRow] = []
      for number in (first..<last).reversed().map({ $0 + 1 }) {
        let client = author.binding.client
        let rehearsed = try await actor.undoChangeSet(number, of: client, isRehearsal: true)
        let undo = try await actor.undoChangeSet(number, of: client)
        #expect(undo == rehearsed)
        left += undo.leftRows
        undone += undo.rowCount
        hidden += try await actor.parkedRows().count
        if Bool.random(using: &random) { try await actor.synchronize() }
      }
      try await settle()
      let after = [try await pair.managers[0].digest(), try await pair.managers[1].digest()]
      #expect(after[0] == after[1])
      #expect(left.allSatisfy { $0.reason == .refused && hidden > 0 })
      guard left.isEmpty else { continue }
      #expect(after[0].visible == before)
      if after[0].visible != before { #expect(try pair.rows(0) == rows) }
    }
    #expect(undone > 0)
  }
}
