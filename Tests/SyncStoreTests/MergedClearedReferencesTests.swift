import SyncModel
import Testing

@testable import SyncStore

/// References to rows that a document does not take, in rows that a database brings into it.
@Suite struct MergedClearedReferencesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// - Parameters:
  ///   - reference: What is declared of the column, after its type.
  ///   - condition: A condition on the names of folders.
  private static func schema(_ reference: String, _ condition: String = "") -> String {
    """
    CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT \(condition));
    CREATE TABLE note (id INTEGER PRIMARY KEY, name TEXT, folder INTEGER \(reference));
    """
  }

  /// A database with a folder that the document refuses, and a folder of the same number in the
  /// document.
  private func merge(
    _ reference: String, isInPlace: Bool = false, isDeclared: Bool = false
  ) throws -> (devices: [Device], merged: MergedRows) {
    var configuration = StoreConfiguration()
    if isDeclared { configuration.references = ["note": ["folder": "folder"]] }
    let condition = "CHECK (length(name) < 9)"
    return try scratch.merge(
      Self.schema(reference, condition),
      document: """
        INSERT INTO folder VALUES (1, 'one'), (2, 'two'); INSERT INTO note VALUES (1, 'x', 2);
        """,
      local: """
        INSERT INTO folder VALUES (1, 'one'), (2, 'a very long name');
        INSERT INTO note VALUES (7, 'kid', 2), (8, 'other', 1);
        """, configuration: configuration, localSchema: Self.schema(reference),
      isInPlace: isInPlace)
  }

  private static let notes = """
    SELECT note.name, folder.name FROM note LEFT JOIN folder ON folder.id = folder ORDER BY 1
    """

  /// As if another device had deleted the folder.
  @Test(arguments: [false, true], [false, true])
  func aNoteWithoutItsFolderIsThere(isDeclared: Bool, isInPlace: Bool) throws {
    let (devices, merged) = try merge(
      isDeclared ? "" : "REFERENCES folder ON DELETE SET NULL", isInPlace: isInPlace,
      isDeclared: isDeclared)
    #expect(merged.refusedRows == 1 && merged.insertedRows == 2)
    try converge(devices, Self.notes, ["kid|NULL", "other|one", "x|two"])
    let conflicts = try devices[1].store.conflicts()
    try #require(conflicts.map(\.kind) == [.cell, .condition])
    let lost = try #require(conflicts.first)
    #expect(lost.column == "folder" && lost.outcome == .remote)
    #expect(lost.local.cells?.first?.value == .identity(conflicts[1].identity))
    #expect(lost.remote.cells?.first?.value == .null)
    // The folder is not there, and the document's folder of its number is another one.
    #expect(throws: StoreError.self) {
      try devices[1].store.restoreConflict(lost.number, side: .local)
    }
    try converge(devices, Self.notes, ["kid|NULL", "other|one", "x|two"])
    try expectSound(devices)
  }

  @Test(arguments: [
    "REFERENCES folder ON DELETE CASCADE", "REFERENCES folder",
    "NOT NULL REFERENCES folder ON DELETE SET NULL",
    "REFERENCES folder ON DELETE SET DEFAULT",
  ])
  func aNoteThatNeedsItsFolderIsInTheJournal(reference: String) throws {
    let (devices, merged) = try merge(reference)
    #expect(merged.refusedRows == 2 && merged.insertedRows == 1)
    let conflicts = try devices[1].store.conflicts()
    try #require(conflicts.map(\.kind) == [.reference, .condition])
    let note = try #require(conflicts.first)
    let folder = note.local.cells?.first { $0.column == "folder" }?.value
    #expect(folder == .identity(conflicts[1].identity))
    // It does not get into the document's folder of the number.
    #expect(throws: StoreError.self) {
      try devices[1].store.restoreConflict(note.number, side: .local)
    }
    try converge(devices, Self.notes, ["other|one", "x|two"])
    try expectSound(devices)
  }

  /// The document has the row, and its newer values stay.
  @Test func aRowOfBothKeepsItsFolder() throws {
    let reference = "REFERENCES folder ON DELETE SET NULL, code TEXT UNIQUE"
    let (devices, merged) = try scratch.merge(
      Self.schema(reference, "CHECK (length(name) < 9)"),
      document: """
        INSERT INTO folder VALUES (2, 'two');
        INSERT INTO note VALUES (1, 'x', 2, 'a'), (2, 'y', NULL, 'b');
        """,
      local: """
        INSERT INTO folder VALUES (2, 'a very long name');
        INSERT INTO note VALUES (7, 'X', 2, 'a'), (8, 'Y', 2, 'b');
        """, prefer: .local, localSchema: Self.schema(reference))
    #expect(merged.refusedRows == 1 && merged.differingRows == 2)
    try converge(devices, Self.notes, ["X|two", "Y|NULL"])
    let cells = try devices[1].store.conflicts().filter { $0.kind == .cell }
    #expect(cells.filter { $0.column == "folder" }.count == 2)
    try expectSound(devices)
  }

  /// Notes that refer to one another, and a folder that the document refuses.
  @Test func rowsInACircleAreThereWithoutTheirFolder() throws {
    let reference = """
      REFERENCES folder ON DELETE SET NULL, next INTEGER REFERENCES note DEFERRABLE INITIALLY DEFERRED
      """
    let (devices, merged) = try scratch.merge(
      Self.schema(reference, "CHECK (length(name) < 9)"),
      document: "INSERT INTO folder VALUES (2, 'two'); INSERT INTO note VALUES (1, 'x', 2, 1);",
      local: """
        INSERT INTO folder VALUES (2, 'a very long name');
        INSERT INTO note VALUES (1, 'y', 2, 2), (2, 'z', NULL, 1);
        """, localSchema: Self.schema(reference))
    #expect(merged.refusedRows == 1 && merged.insertedRows == 2)
    try converge(devices, Self.notes, ["x|two", "y|NULL", "z|NULL"])
    let conflicts = try devices[1].store.conflicts()
    #expect(conflicts.map(\.kind).sorted { $0.rawValue < $1.rawValue } == [.cell, .condition])
    try expectSound(devices)
  }

  /// The keys of the folders are texts: the entry has the text.
  @Test(arguments: [false, true])
  func theJournalHasTheLostValue(isKey: Bool) throws {
    func schema(_ condition: String = "") -> String {
      """
      CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT UNIQUE \(condition));
      CREATE TABLE note (id INTEGER PRIMARY KEY, name TEXT,
        folder TEXT REFERENCES folder (name) ON DELETE SET NULL);
      """.replacing(
        isKey ? "id INTEGER PRIMARY KEY, name TEXT UNIQUE" : "none", with: "name TEXT PRIMARY KEY")
    }
    let (devices, merged) = try scratch.merge(
      schema("CHECK (length(name) < 9)"), document: "",
      local: """
        INSERT INTO folder (name) VALUES ('a very long name');
        INSERT INTO note VALUES (7, 'kid', 'a very long name');
        """, localSchema: schema())
    #expect(merged.refusedRows == 1 && merged.insertedRows == 1)
    let conflicts = try devices[1].store.conflicts()
    try #require(conflicts.map(\.kind) == [.cell, .condition])
    #expect(conflicts[0].local.cells?.first?.value == .text(Array("a very long name".utf8)))
    try converge(devices, "SELECT name, folder FROM note", ["kid|NULL"])
    try expectSound(devices)
  }

  /// With NULL in its place, a note would have the unique value of another one.
  @Test func aNoteWithoutItsFolderDoesNotBecomeAnotherNote() throws {
    let reference = "REFERENCES folder ON DELETE SET NULL"
    let index = "CREATE UNIQUE INDEX named ON note (name) WHERE folder IS NULL;"
    let (devices, merged) = try scratch.merge(
      Self.schema(reference, "CHECK (length(name) < 9)") + index,
      document: "INSERT INTO note VALUES (1, 'inbox', NULL);",
      local: """
        INSERT INTO folder VALUES (2, 'a very long name'); INSERT INTO note VALUES (5, 'inbox', 2);
        """, prefer: .local, localSchema: Self.schema(reference) + index)
    #expect(merged.refusedRows == 2 && merged.differingRows == 0)
    try converge(devices, "SELECT name, folder FROM note", ["inbox|NULL"])
    try expectSound(devices)
  }

  /// A row with NULL in its key: no entry could name it.
  @Test func aRowWithoutKeyIsInTheJournal() throws {
    let mark =
      "CREATE TABLE mark (k TEXT PRIMARY KEY, folder INTEGER REFERENCES folder ON DELETE SET NULL);"
    let (devices, merged) = try scratch.merge(
      Self.schema("", "CHECK (length(name) < 9)") + mark, document: "",
      local: """
        INSERT INTO folder VALUES (2, 'a very long name'); INSERT INTO mark VALUES (NULL, 2);
        """, localSchema: Self.schema("") + mark)
    #expect(merged.refusedRows == 2)
    #expect(try devices[1].rows("SELECT * FROM mark") == [])
    #expect(try devices[1].store.conflicts().map(\.kind) == [.reference, .condition])
  }

  /// The row is there, and has NULL in the column by which others refer to it: whatever ON DELETE
  /// says, the reference is NULL, too.
  @Test(arguments: ["", "ON DELETE SET NULL", "ON DELETE CASCADE"], [false, true])
  func aReferenceToAValueThatIsNullIsNull(action: String, isInPlace: Bool) throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT UNIQUE, code TEXT UNIQUE);
      CREATE TABLE c (k TEXT PRIMARY KEY, code TEXT REFERENCES p (code) ON UPDATE CASCADE \(action));
      CREATE TABLE g (id TEXT PRIMARY KEY, c TEXT REFERENCES c (k));
      CREATE TABLE mark (id INTEGER PRIMARY KEY, code TEXT REFERENCES p (code));
      """,
      document: """
        INSERT INTO p VALUES (1, 'Ann', NULL), (2, 'Bob', '7'); INSERT INTO c VALUES ('x', NULL);
        """,
      local: """
        INSERT INTO p VALUES (1, 'Ann', '7'); INSERT INTO c VALUES ('x', '7'), ('y', '7');
        INSERT INTO g VALUES ('z', 'x'); INSERT INTO mark VALUES (1, '7');
        """, configuration: AppTriggerTests.excluding("mark"), isInPlace: isInPlace)
    #expect(merged.refusedRows == 0 && merged.insertedRows == 2)
    // It does not lead to Bob, who has the value in the document.
    #expect(try devices[1].rows("SELECT * FROM mark") == ["1|NULL"])
    let entries = try devices[1].store.conflicts().filter { $0.table == "c" && $0.column == "code" }
    #expect(entries.count == 2)
    #expect(entries.allSatisfy { $0.local.cells?.first?.value == .text(Array("7".utf8)) })
    try converge(devices, "SELECT k, code FROM c ORDER BY 1", ["x|NULL", "y|NULL"])
    try converge(devices, "SELECT * FROM g", ["z|x"])
    try expectSound(devices)
  }

  /// Only the value that is missing becomes NULL.
  @Test(arguments: [false, true])
  func aReferenceByTwoValuesKeepsTheOneThatIsThere(isNotNull: Bool) throws {
    let (devices, merged) = try scratch.merge(
      """
      CREATE TABLE p (
        id INTEGER PRIMARY KEY, name TEXT UNIQUE, tenant TEXT, code TEXT, UNIQUE (tenant, code));
      CREATE TABLE c (
        k TEXT PRIMARY KEY, tenant TEXT NOT NULL, code TEXT \(isNotNull ? "NOT NULL" : ""),
        FOREIGN KEY (tenant, code) REFERENCES p (tenant, code));
      """,
      document: "INSERT INTO p VALUES (1, 'Ann', 't', NULL), (2, 'Bob', 't', '7');",
      local: "INSERT INTO p VALUES (1, 'Ann', 't', '7'); INSERT INTO c VALUES ('y', 't', '7');")
    #expect(merged.insertedRows == (isNotNull ? 0 : 1) && merged.refusedRows == (isNotNull ? 1 : 0))
    try converge(devices, "SELECT * FROM c", isNotNull ? [] : ["y|t|NULL"])
    let entry = try #require(
      try devices[1].store.conflicts().first { $0.table == "c" })
    #expect(entry.kind == (isNotNull ? .reference : .cell))
    #expect(
      entry.local.cells?.contains { $0.value == .text(Array("7".utf8)) } ?? false, "\(entry)")
    try expectSound(devices)
  }
}
