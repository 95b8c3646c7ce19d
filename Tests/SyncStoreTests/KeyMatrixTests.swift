import SyncModel
import Testing

@testable import SyncStore

/// What a row is known by, times what refers to it, times what is done to it,
/// on one device alone and beside an edit on another.
///
/// Each combination has rows of its own, all in the same two stores: their
/// texts end in its number, and their keys are in its hundred.
@Suite struct KeyMatrixTests {
  /// What the rows of `item` are known by.
  enum Kind: String, CaseIterable {
    /// Random bytes beside the integer key.
    case surrogate
    /// The key itself, which is a text and the same everywhere.
    case primaryKey
    /// A declared column beside the integer key.
    case declared
    /// The row of another table that the integer key refers to, and that is
    /// known by random bytes.
    case oneToOne
    /// Likewise, known by a declared column.
    case oneToOneDeclared

    var isReference: Bool { self == .oneToOne || self == .oneToOneDeclared }

    /// The type of the keys of `item`, and of what refers to them.
    var keyType: String { self == .primaryKey ? "TEXT" : "INTEGER" }

    var configuration: StoreConfiguration {
      var configuration = StoreConfiguration()
      switch self {
      case .declared: configuration.identities = ["item": .columns(["name"])]
      case .oneToOneDeclared: configuration.identities = ["base": .columns(["label"])]
      case .surrogate, .primaryKey, .oneToOne: break
      }
      return configuration
    }
  }

  /// What the foreign keys to `item` do when it is deleted.
  enum Deletion: String, CaseIterable {
    case cascade = "ON DELETE CASCADE"
    /// REPLACE leaves what refers to the key to the new row.
    case deferred = "DEFERRABLE INITIALLY DEFERRED"
  }

  // MARK: - Tables

  /// References outside of the key, inside of it, as the whole key, and to a
  /// row with such a key.
  private static func schema(_ kind: Kind, _ deletion: Deletion) -> String {
    let reference = "REFERENCES item (id) ON UPDATE CASCADE \(deletion.rawValue)"
    let type = kind.keyType
    let key =
      kind.isReference ? "REFERENCES base (id) ON UPDATE CASCADE ON DELETE CASCADE" : ""
    return """
      CREATE TABLE base (id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE);
      CREATE TABLE item (id \(type) PRIMARY KEY \(key), name TEXT NOT NULL UNIQUE, note TEXT);
      CREATE TABLE child (id INTEGER PRIMARY KEY, text TEXT, item \(type) \(reference));
      CREATE TABLE part (item \(type) NOT NULL \(reference), n INTEGER NOT NULL, text TEXT,
        PRIMARY KEY (item, n));
      CREATE TABLE detail (id \(type) PRIMARY KEY \(reference), text TEXT);
      CREATE TABLE leaf (id INTEGER PRIMARY KEY, text TEXT, item \(type), n INTEGER,
        FOREIGN KEY (item, n) REFERENCES part (item, n) ON UPDATE CASCADE ON DELETE SET NULL);
      """
  }

  private static let start = """
    INSERT INTO base VALUES (@1, 'L1#'), (@2, 'L2#'), (@3, 'L3#'), (@4, 'L4#');
    INSERT INTO item VALUES (@1, 'a#', 'na#'), (@2, 'b#', 'nb#');
    INSERT INTO child VALUES (@1, 'ca#', @1), (@2, 'cb#', @2);
    INSERT INTO part VALUES (@1, 1, 'pa#'), (@2, 1, 'pb#');
    INSERT INTO detail VALUES (@1, 'da#'), (@2, 'db#');
    INSERT INTO leaf VALUES (@1, 'la#', @1, 1), (@2, 'lb#', @2, 1);
    """

  /// All that is shown, by what rows are called in place of their numbers.
  private static func query(_ kind: Kind) -> String {
    """
    SELECT 'item', name, note, \(kind.isReference ? "label" : "NULL") FROM item
      LEFT JOIN base USING (id)
    UNION ALL SELECT 'child', text, name, NULL FROM child LEFT JOIN item ON item.id = child.item
    UNION ALL SELECT 'part', text, n, name FROM part LEFT JOIN item ON item.id = part.item
    UNION ALL SELECT 'detail', text, name, NULL FROM detail LEFT JOIN item USING (id)
    UNION ALL SELECT 'leaf', leaf.text, part.text, NULL FROM leaf LEFT JOIN part USING (item, n)
    UNION ALL SELECT 'base', label, NULL, NULL FROM base ORDER BY 1, 2, 3, 4
    """
  }

  // MARK: - Edits

  /// An edit of the row a.
  struct Edit {
    var name: String
    var sql: String
    /// Without them what refers to the row is left behind.
    var hasForeignKeys = true
  }

  private static let clear = """
    DELETE FROM child WHERE item = @1; DELETE FROM leaf WHERE item = @1;
    DELETE FROM part WHERE item = @1; DELETE FROM detail WHERE id = @1
    """

  private static func swap(_ table: String, _ column: String, _ one: String, _ two: String)
    -> String
  {
    let third = column == "id" ? "@99" : "'~#'"
    return [(one, third), (two, one), (third, two)].map {
      "UPDATE \(table) SET \(column) = \($1) WHERE \(column) = \($0)"
    }.joined(separator: "; ")
  }

  private static func edits(_ kind: Kind) -> [Edit] {
    let moved = kind.isReference ? "base" : "item"
    let rename = "UPDATE item SET name = 'z#' WHERE name = 'a#'"
    let edits = [
      Edit(name: "nothing", sql: "SELECT 1"),
      Edit(
        name: "insert",
        sql: """
          INSERT INTO item VALUES (@3, 'c#', 'nc#'); INSERT INTO child VALUES (@3, 'cc#', @3);
          INSERT INTO part VALUES (@3, 1, 'pc#'); INSERT INTO detail VALUES (@3, 'dc#');
          INSERT INTO leaf VALUES (@3, 'lc#', @3, 1)
          """),
      Edit(name: "update", sql: "UPDATE item SET note = 'new#' WHERE name = 'a#'"),
      Edit(name: "rename", sql: rename),
      Edit(
        name: "rename twice",
        sql: "UPDATE item SET name = 'y#' WHERE name = 'a#'; "
          + "UPDATE item SET name = 'z#' WHERE name = 'y#'"),
      Edit(name: "replace by id", sql: "REPLACE INTO item VALUES (@1, 'z#', 'replaced#')"),
      Edit(name: "replace by both", sql: "REPLACE INTO item VALUES (@1, 'b#', 'replaced#')"),
      Edit(
        name: "replace by name", sql: "\(clear); REPLACE INTO item VALUES (@4, 'a#', 'replaced#')"),
      Edit(name: "change the id", sql: "UPDATE \(moved) SET id = @9 WHERE id = @1"),
      Edit(
        name: "change the id and the name",
        sql: "UPDATE \(moved) SET id = @9 WHERE id = @1; \(rename)"),
      Edit(name: "delete", sql: "\(clear); DELETE FROM item WHERE id = @1"),
      Edit(
        name: "delete and insert",
        sql: "BEGIN; DELETE FROM item WHERE id = @1; "
          + "INSERT INTO item VALUES (@1, 'a#', 'again#'); COMMIT"),
      Edit(
        name: "delete and insert under another name",
        sql: "BEGIN; DELETE FROM item WHERE id = @1; "
          + "INSERT INTO item VALUES (@1, 'z#', 'again#'); COMMIT"),
      Edit(
        name: "delete all and insert under another id",
        sql: """
          \(clear); DELETE FROM item WHERE id = @1; INSERT INTO item VALUES (@4, 'a#', 'again#');
          INSERT INTO detail VALUES (@4, 'again#'); INSERT INTO part VALUES (@4, 1, 'again#')
          """),
      Edit(name: "swap the names", sql: swap("item", "name", "'a#'", "'b#'")),
      Edit(name: "swap the ids", sql: swap(moved, "id", "@1", "@2")),
      Edit(
        name: "change the id with foreign keys off",
        sql: "UPDATE \(moved) SET id = @9 WHERE id = @1", hasForeignKeys: false),
      Edit(
        name: "replace by id with foreign keys off",
        sql: "REPLACE INTO item VALUES (@1, 'z#', 'replaced#')", hasForeignKeys: false),
      Edit(
        name: "replace by name with foreign keys off",
        sql: "REPLACE INTO item VALUES (@4, 'a#', 'replaced#')", hasForeignKeys: false),
    ]
    guard kind.isReference else { return edits }
    return edits + [
      Edit(name: "rename the base", sql: "UPDATE base SET label = 'Z#' WHERE label = 'L1#'"),
      Edit(name: "change the reference", sql: "UPDATE item SET id = @4 WHERE id = @1"),
      Edit(name: "swap the labels", sql: swap("base", "label", "'L1#'", "'L2#'")),
      Edit(
        name: "replace the base with foreign keys off",
        sql: "REPLACE INTO base VALUES (@1, 'Z#')", hasForeignKeys: false),
    ]
  }

  /// What another device does at the same time.
  private static let others: [(name: String, sql: String)] = [
    ("does nothing", "SELECT 1"),
    ("edits the row", "UPDATE item SET note = 'other#' WHERE id = @1"),
    (
      "adds what refers to it",
      """
      INSERT INTO child VALUES (@8, 'c8#', @1); INSERT INTO part VALUES (@1, 8, 'p8#');
      INSERT INTO leaf VALUES (@8, 'l8#', @1, 8)
      """
    ),
    (
      "edits what refers to it",
      """
      UPDATE child SET text = 'c9#' WHERE item = @1; UPDATE part SET text = 'p9#' WHERE item = @1;
      UPDATE detail SET text = 'd9#' WHERE id = @1; UPDATE leaf SET text = 'l9#' WHERE item = @1
      """
    ),
    ("renames it", "UPDATE item SET name = 'y#' WHERE id = @1"),
    ("renames the base", "UPDATE base SET label = 'Y#' WHERE id = @1"),
    ("deletes it", "\(clear); DELETE FROM item WHERE id = @1"),
  ]

  /// A statement with the keys and texts of one combination.
  private static func fill(_ sql: String, _ number: Int) -> String {
    sql.replacing("@", with: "\(number)").replacing("#", with: "#\(number)")
  }

  // MARK: - The matrix

  @Test(arguments: Kind.allCases, Deletion.allCases)
  func allDevicesShowTheSame(kind: Kind, deletion: Deletion) throws {
    let cells = Self.edits(kind).flatMap { edit in Self.others.map { (edit, $0) } }
    let numbers = cells.indices.map { $0 + 100 }
    let scratch = try Scratch()
    let devices = try scratch.devices(
      2,
      Self.schema(kind, deletion) + "BEGIN;"
        + numbers.map { Self.fill(Self.start, $0) }.joined() + "COMMIT",
      configuration: kind.configuration)
    for (number, (edit, _)) in zip(numbers, cells) {
      try devices[0].run("PRAGMA foreign_keys = \(edit.hasForeignKeys ? "ON" : "OFF")")
      try Self.attempt(Self.fill(edit.sql, number), on: devices[0])
    }
    let author = try Self.byNumber(devices[0].rows(Self.query(kind)))
    try devices[1].setClock(offset: 60)
    for (number, (_, other)) in zip(numbers, cells) {
      try Self.attempt(Self.fill(other.sql, number), on: devices[1])
    }
    for _ in 0..<3 {
      try devices[0].receive(from: devices[1])
      try devices[1].receive(from: devices[0])
    }
    let shown = try devices.map { try Self.byNumber($0.rows(Self.query(kind))) }
    for (number, (edit, other)) in zip(numbers, cells) {
      let comment: Comment = "\(number): \(edit.name), while another \(other.name)"
      #expect(shown[0][number] == shown[1][number], comment)
      if other.name == "does nothing" {
        let expected = Self.leftBehind(edit, kind, deletion) ?? author[number]
        #expect(shown[1][number] == expected, comment)
      }
    }
    #expect(try devices[0].store.digest() == devices[1].store.digest())
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.rows("PRAGMA foreign_key_check") == [])
    }
  }

  /// Runs what SQLite may refuse, as it would without us.
  private static func attempt(_ sql: String, on device: Device) throws {
    do {
      try device.run(sql)
    } catch is Program.Failure {
      if device.program.isInTransaction { try device.run("ROLLBACK") }
    }
  }

  /// The rows of each combination, without its number.
  private static func byNumber(_ rows: [String]) -> [Int: [String]] {
    var result: [Int: [String]] = [:]
    for row in rows {
      let number = row.split(separator: "#").dropFirst().first.flatMap {
        Int($0.prefix { $0.isNumber })
      }
      guard let number else { continue }
      result[number, default: []].append(row.replacing("#\(number)", with: ""))
    }
    return result.mapValues { $0.sorted() }
  }

  /// What is shown of rows that were left behind with foreign keys off.
  private static func leftBehind(
    _ edit: Edit, _ kind: Kind, _ deletion: Deletion
  ) -> [String]? {
    guard !edit.hasForeignKeys else { return nil }
    let others = [
      "base|L1|NULL|NULL", "base|L2|NULL|NULL", "base|L3|NULL|NULL", "base|L4|NULL|NULL",
      "child|cb|b|NULL", "detail|db|b|NULL", "leaf|lb|pb|NULL", "part|pb|1|b",
      "item|b|nb|" + (kind.isReference ? "L2" : "NULL"),
    ]
    let all = ["child|ca|a|NULL", "detail|da|a|NULL", "leaf|la|pa|NULL", "part|pa|1|a"]
    // A row that goes takes along what refers to it by CASCADE in its key. What NO ACTION would
    // hold keeps it, and is with the row that has its value by now.
    let isHeld = deletion == .deferred
    let alone = ["leaf|la|NULL|NULL"]
    let rows: [String]
    switch (edit.name, kind) {
    case ("change the id with foreign keys off", .surrogate),
      ("change the id with foreign keys off", .primaryKey):
      // The row is deleted, as moved to another, and references outside of keys
      // follow.
      rows = ["item|a|na|NULL"] + (isHeld ? all : ["child|ca|a|NULL"] + alone)
    case ("change the id with foreign keys off", .oneToOne):
      rows = isHeld ? ["item|a|na|L1"] + all : alone
    case ("change the id with foreign keys off", .declared):
      rows = ["item|a|na|NULL"] + all
    case ("change the id with foreign keys off", .oneToOneDeclared):
      rows = ["item|a|na|L1"] + all
    case ("replace by name with foreign keys off", .declared):
      // It is the same row.
      rows = ["item|a|replaced|NULL"] + all
    case ("replace by name with foreign keys off", _):
      // Where the old one is held it gives its name to the new one, which stands
      // in for it.
      rows =
        ["item|a|replaced|" + (kind.isReference ? "L4" : "NULL")] + (isHeld ? all : alone)
    default: return nil
    }
    return (others + rows).sorted()
  }
}
