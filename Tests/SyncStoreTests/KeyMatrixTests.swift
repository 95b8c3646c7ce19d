import SyncModel
import Testing

@testable import SyncStore

/// What a row is known by, times what refers to it, times what is done to it,
/// on one device alone and beside an edit on another.
///
/// Each combination has rows of its own, all in the same two stores: their
/// texts end in its number, and their keys are in its hundred. The same edits
/// run on two databases that are not synchronized: the one has the device's
/// edit first, the other that of the other device.
@Suite struct KeyMatrixTests {
  /// What the rows of `item` are known by.
  enum Kind: String, CaseIterable {
    /// Random bytes beside the integer key.
    case surrogate
    /// The key itself, which is a text and the same everywhere.
    case primaryKey
    /// A declared column beside the integer key.
    case declared
    /// Two declared columns beside the integer key.
    case declaredPair
    /// The row of another table that the integer key refers to, and that is
    /// known by random bytes.
    case oneToOne
    /// Likewise, known by a declared column.
    case oneToOneDeclared

    var isReference: Bool { self == .oneToOne || self == .oneToOneDeclared }
    var isDeclared: Bool { self == .declared || self == .declaredPair }

    /// The type of the keys of `item`, and of what refers to them.
    var keyType: String { self == .primaryKey ? "TEXT" : "INTEGER" }

    var configuration: StoreConfiguration {
      var configuration = StoreConfiguration()
      switch self {
      case .declared: configuration.identities = ["item": .columns(["name"])]
      case .declaredPair: configuration.identities = ["item": .columns(["name", "place"])]
      case .oneToOneDeclared: configuration.identities = ["base": .columns(["label"])]
      case .surrogate, .primaryKey, .oneToOne: break
      }
      return configuration
    }
  }

  /// What the foreign keys to `item` do when it is deleted, or its key changed.
  enum Action: String, CaseIterable {
    case cascade
    /// REPLACE leaves what refers to the key to the new row.
    case deferred
    case restrict
    /// References outside of keys become NULL.
    case setNull
    /// References outside of keys become those to a row that always exists.
    case setDefault
    /// A key that rows refer to is not changed, unless these change with it.
    case noUpdate

    /// Of the references in keys.
    var inKeys: String {
      switch self {
      case .cascade, .setNull, .setDefault: "ON UPDATE CASCADE ON DELETE CASCADE"
      case .deferred: "ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED"
      case .restrict: "ON UPDATE CASCADE ON DELETE RESTRICT"
      case .noUpdate: "ON UPDATE NO ACTION ON DELETE CASCADE"
      }
    }

    /// Of the references outside of keys.
    var outside: String {
      switch self {
      case .cascade, .deferred, .restrict, .noUpdate: inKeys
      case .setNull: "ON UPDATE CASCADE ON DELETE SET NULL"
      case .setDefault: "ON UPDATE CASCADE ON DELETE SET DEFAULT"
      }
    }

    /// Whether a row that other rows refer to exists as long as they do.
    var isHolding: Bool { self == .deferred || self == .restrict }
  }

  // MARK: - Tables

  /// References outside of the key, inside of it, as the whole key, and to a
  /// row with such a key.
  private static func schema(_ kind: Kind, _ action: Action) -> String {
    let type = kind.keyType
    let key =
      kind.isReference ? "REFERENCES base (id) ON UPDATE CASCADE ON DELETE CASCADE" : ""
    let unique =
      kind == .declaredPair
      ? "name TEXT NOT NULL, note TEXT, place TEXT NOT NULL DEFAULT 'here', UNIQUE (name, place)"
      : "name TEXT NOT NULL UNIQUE, note TEXT"
    let update = action == .noUpdate ? "" : "ON UPDATE CASCADE"
    return """
      CREATE TABLE base (id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE);
      CREATE TABLE item (id \(type) PRIMARY KEY \(key), \(unique));
      CREATE TABLE child (id INTEGER PRIMARY KEY, text TEXT,
        item \(type) \(action == .setDefault ? "DEFAULT 1" : "")
        REFERENCES item (id) \(action.outside));
      CREATE TABLE part (item \(type) NOT NULL REFERENCES item (id) \(action.inKeys),
        n INTEGER NOT NULL, text TEXT, PRIMARY KEY (item, n));
      CREATE TABLE detail (id \(type) PRIMARY KEY REFERENCES item (id) \(action.inKeys), text TEXT);
      CREATE TABLE leaf (id INTEGER PRIMARY KEY, text TEXT, item \(type), n INTEGER,
        FOREIGN KEY (item, n) REFERENCES part (item, n) \(update) ON DELETE SET NULL);
      INSERT INTO base VALUES (1, 'inbox');
      INSERT INTO item (id, name) VALUES (1, 'inbox');
      """
  }

  private static let start = """
    INSERT INTO base VALUES (@1, 'L1#'), (@2, 'L2#'), (@3, 'L3#'), (@4, 'L4#');
    INSERT INTO item (id, name, note) VALUES (@1, 'a#', 'na#'), (@2, 'b#', 'nb#');
    INSERT INTO child VALUES (@1, 'ca#', @1), (@2, 'cb#', @2);
    INSERT INTO part VALUES (@1, 1, 'pa#'), (@2, 1, 'pb#');
    INSERT INTO detail VALUES (@1, 'da#'), (@2, 'db#');
    INSERT INTO leaf VALUES (@1, 'la#', @1, 1), (@2, 'lb#', @2, 1);
    """

  /// All that is shown, by what rows are called in place of their numbers.
  private static func query(_ kind: Kind) -> String {
    let besides =
      switch kind {
      case .oneToOne, .oneToOneDeclared: "label"
      case .declaredPair: "place"
      case .surrogate, .primaryKey, .declared: "NULL"
      }
    return """
      SELECT 'item', name, note, \(besides) FROM item LEFT JOIN base USING (id)
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
    let insert = "INSERT INTO item (id, name, note) VALUES"
    let replace = "REPLACE INTO item (id, name, note) VALUES"
    var edits = [
      Edit(name: "nothing", sql: "SELECT 1"),
      Edit(
        name: "insert",
        sql: """
          \(insert) (@3, 'c#', 'nc#'); INSERT INTO child VALUES (@3, 'cc#', @3);
          INSERT INTO part VALUES (@3, 1, 'pc#'); INSERT INTO detail VALUES (@3, 'dc#');
          INSERT INTO leaf VALUES (@3, 'lc#', @3, 1)
          """),
      Edit(name: "update", sql: "UPDATE item SET note = 'new#' WHERE name = 'a#'"),
      Edit(name: "rename", sql: rename),
      Edit(
        name: "rename twice",
        sql: "UPDATE item SET name = 'y#' WHERE name = 'a#'; "
          + "UPDATE item SET name = 'z#' WHERE name = 'y#'"),
      Edit(name: "replace by id", sql: "\(replace) (@1, 'z#', 'replaced#')"),
      Edit(name: "replace by both", sql: "\(replace) (@1, 'b#', 'replaced#')"),
      Edit(
        name: "replace by name", sql: "\(clear); \(replace) (@4, 'a#', 'replaced#')"),
      Edit(
        name: "upsert by id",
        sql: """
          \(insert) (@1, 'z#', 'upserted#')
          ON CONFLICT (id) DO UPDATE SET name = excluded.name, note = excluded.note
          """),
      Edit(
        name: "upsert by name",
        sql: "\(insert) (@4, 'a#', 'upserted#') ON CONFLICT DO UPDATE SET note = excluded.note"),
      Edit(
        name: "upsert by name with another id",
        sql: """
          \(insert) (@4, 'a#', 'upserted#')
          ON CONFLICT DO UPDATE SET id = excluded.id, note = excluded.note
          """),
      Edit(
        name: "update or replace by name",
        sql: "UPDATE OR REPLACE item SET name = 'b#' WHERE name = 'a#'"),
      Edit(
        name: "update or replace by id",
        sql: "UPDATE OR REPLACE item SET id = @2 WHERE id = @1"),
      Edit(name: "change the id", sql: "UPDATE \(moved) SET id = @9 WHERE id = @1"),
      Edit(
        name: "change the id and the name",
        sql: "UPDATE \(moved) SET id = @9 WHERE id = @1; \(rename)"),
      Edit(
        name: "change the id and what refers to it",
        sql: """
          BEGIN; PRAGMA defer_foreign_keys = ON; UPDATE \(moved) SET id = @9 WHERE id = @1;
          UPDATE child SET item = @9 WHERE item = @1; UPDATE part SET item = @9 WHERE item = @1;
          UPDATE detail SET id = @9 WHERE id = @1; UPDATE leaf SET item = @9 WHERE item = @1; COMMIT
          """),
      Edit(name: "delete", sql: "\(clear); DELETE FROM item WHERE id = @1"),
      Edit(name: "delete alone", sql: "DELETE FROM item WHERE id = @1"),
      Edit(
        name: "delete and insert",
        sql: "BEGIN; DELETE FROM item WHERE id = @1; \(insert) (@1, 'a#', 'again#'); COMMIT"),
      Edit(
        name: "delete and insert under another name",
        sql: "BEGIN; DELETE FROM item WHERE id = @1; \(insert) (@1, 'z#', 'again#'); COMMIT"),
      Edit(
        name: "delete all and insert under another id",
        sql: """
          \(clear); DELETE FROM item WHERE id = @1; \(insert) (@4, 'a#', 'again#');
          INSERT INTO detail VALUES (@4, 'again#'); INSERT INTO part VALUES (@4, 1, 'again#')
          """),
      Edit(name: "swap the names", sql: swap("item", "name", "'a#'", "'b#'")),
      Edit(name: "swap the ids", sql: swap(moved, "id", "@1", "@2")),
      Edit(
        name: "change the id with foreign keys off",
        sql: "UPDATE \(moved) SET id = @9 WHERE id = @1", hasForeignKeys: false),
      Edit(
        name: "replace by id with foreign keys off",
        sql: "\(replace) (@1, 'z#', 'replaced#')", hasForeignKeys: false),
      Edit(
        name: "replace by name with foreign keys off",
        sql: "\(replace) (@4, 'a#', 'replaced#')", hasForeignKeys: false),
    ]
    if kind == .declaredPair {
      edits += [
        Edit(name: "change the place", sql: "UPDATE item SET place = 'there' WHERE name = 'a#'"),
        Edit(
          name: "change the place and the name",
          sql: "UPDATE item SET place = 'there', name = 'z#' WHERE name = 'a#'"),
        Edit(
          name: "swap the names in another place",
          sql: "UPDATE item SET place = 'there' WHERE id IN (@1, @2); "
            + swap("item", "name", "'a#'", "'b#'")),
        Edit(
          name: "insert the same name in another place",
          sql: "INSERT INTO item VALUES (@3, 'a#', 'nc#', 'there')"),
      ]
    }
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
    (
      "edits and adds other rows",
      """
      UPDATE item SET note = 'other#' WHERE id = @2; UPDATE child SET text = 'c9#' WHERE id = @2;
      INSERT INTO base VALUES (@5, 'L5#'); INSERT INTO item (id, name) VALUES (@5, 'e#');
      INSERT INTO child VALUES (@5, 'ce#', @5); INSERT INTO part VALUES (@5, 1, 'pe#')
      """
    ),
  ]

  private static let shortOthers: Set = [
    "does nothing", "adds what refers to it", "deletes it", "edits and adds other rows",
  ]

  /// A statement with the keys and texts of one combination.
  private static func fill(_ sql: String, _ number: Int) -> String {
    sql.replacing("@", with: "\(number)").replacing("#", with: "#\(number)")
  }

  // MARK: - The matrix

  /// Two databases with the rows of all combinations, and without us.
  private final class Plain {
    let editFirst: Program
    let otherFirst: Program

    init(_ scratch: Scratch, _ sql: String) throws {
      editFirst = try Program(scratch.path + "/edit-first.db")
      otherFirst = try Program(scratch.path + "/other-first.db")
      for program in [editFirst, otherFirst] {
        try program.run("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF")
        try program.run(sql)
      }
    }
  }

  @Test(arguments: Kind.allCases, Action.allCases)
  func allDevicesShowTheSame(kind: Kind, action: Action) throws {
    // With all that another device may do only for two of the actions, for the time that it takes.
    let others =
      [.cascade, .deferred].contains(action)
      ? Self.others : Self.others.filter { Self.shortOthers.contains($0.name) }
    let cells = Self.edits(kind).flatMap { edit in others.map { (edit, $0) } }
    let numbers = cells.indices.map { $0 + 100 }
    let scratch = try Scratch()
    let sql =
      Self.schema(kind, action) + "BEGIN;"
      + numbers.map { Self.fill(Self.start, $0) }.joined() + "COMMIT"
    let devices = try scratch.devices(2, sql, configuration: kind.configuration)
    let plain = try Plain(scratch, sql)

    // The device's edits, and the same without us.
    var refused: [Int: Bool] = [:]
    for (number, (edit, _)) in zip(numbers, cells) {
      let statement = Self.fill(edit.sql, number)
      let refusals = try [devices[0].program, plain.editFirst].map {
        try Self.attempt(statement, hasForeignKeys: edit.hasForeignKeys, by: $0)
      }
      let comment: Comment = "\(number): \(edit.name): \(refusals)"
      #expect(refusals[0] == refusals[1], comment)
      #expect((refusals[1] != nil) == Self.isRefused(edit, kind, action), comment)
      refused[number] = refusals[1] != nil
    }
    let alone = try Self.byNumber(plain.editFirst.rows(Self.query(kind)))
    let author = try Self.byNumber(devices[0].rows(Self.query(kind)))

    // The other device's, of which none is refused.
    try devices[1].setClock(offset: 3_600)
    var both: Set<Int> = []
    for (number, (edit, other)) in zip(numbers, cells) {
      let statement = Self.fill(other.sql, number)
      try devices[1].run(statement)
      try plain.otherFirst.run("PRAGMA foreign_keys = ON; \(statement)")
      let refusals = [
        try Self.attempt(statement, hasForeignKeys: true, by: plain.editFirst),
        try Self.attempt(
          Self.fill(edit.sql, number), hasForeignKeys: edit.hasForeignKeys, by: plain.otherFirst),
      ]
      if refused[number] == false, refusals == [nil, nil] { both.insert(number) }
    }
    let orders = try [plain.editFirst, plain.otherFirst].map {
      try Self.byNumber($0.rows(Self.query(kind)))
    }

    for _ in 0..<3 {
      try devices[0].receive(from: devices[1])
      try devices[1].receive(from: devices[0])
    }
    let shown = try devices.map { try Self.byNumber($0.rows(Self.query(kind))) }
    var compared = 0
    for (number, (edit, other)) in zip(numbers, cells) {
      let comment: Comment = "\(number): \(edit.name), while another \(other.name)"
      #expect(author[number] == alone[number], comment)
      #expect(shown[0][number] == shown[1][number], comment)
      if other.name == "does nothing" {
        let expected = Self.leftBehind(edit, kind, action) ?? alone[number]
        #expect(shown[1][number] == expected, comment)
        compared += 1
      } else if edit.hasForeignKeys, both.contains(number),
        orders[0][number] == orders[1][number], !Self.isConflict(edit, other.name, kind)
      {
        // Neither touches what the other does: the order does not matter.
        #expect(shown[1][number] == orders[0][number], comment)
        compared += 1
      }
    }
    let isKnownByValues = kind.isDeclared || kind == .oneToOneDeclared
    #expect(compared > cells.count / (isKnownByValues ? 4 : 3), "\(compared)")
    #expect(try devices[0].store.digest() == devices[1].store.digest())
    for device in devices {
      #expect(try LocalStore.verify(at: device.path).report.findings == [])
      #expect(try device.rows("PRAGMA foreign_key_check") == [])
    }
  }

  /// Runs what SQLite may refuse; the reason, if it does.
  private static func attempt(
    _ sql: String, hasForeignKeys: Bool, by program: Program
  ) throws -> String? {
    try program.run("PRAGMA foreign_keys = \(hasForeignKeys ? "ON" : "OFF")")
    do {
      try program.run(sql)
      return nil
    } catch let failure as Program.Failure {
      if program.isInTransaction { try program.run("ROLLBACK") }
      return failure.description
    }
  }

  /// What SQLite refuses, on the device and without us. It accepts all other edits.
  private static func isRefused(_ edit: Edit, _ kind: Kind, _ action: Action) -> Bool {
    let refused: Set<String> =
      switch action {
      case .cascade, .setNull, .setDefault:
        // By the keys of `part`: those of the row that goes are there too long.
        kind == .primaryKey ? ["update or replace by id"] : []
      case .deferred:
        [
          "delete alone", "replace by both", "update or replace by name",
          "update or replace by id",
        ]
      case .restrict:
        [
          "delete alone", "delete and insert", "delete and insert under another name",
          "replace by id", "replace by both", "update or replace by name",
          "update or replace by id",
        ]
      case .noUpdate:
        [
          "change the id", "change the id and the name", "change the reference", "swap the ids",
          "update or replace by id", "upsert by name with another id",
        ]
      }
    return refused.contains(edit.name)
  }

  /// Whether what another device does touches the same rows as the edit. A row
  /// whose declared value changes is deleted, and inserted under another identity:
  /// that touches all of it, and all rows that have it in their keys.
  private static func isConflict(_ edit: Edit, _ other: String, _ kind: Kind) -> Bool {
    let isKnownByName = kind.isDeclared
    guard isKnownByName || kind == .oneToOneDeclared else { return false }
    if other == "edits and adds other rows" {
      return [
        "replace by both", "update or replace by name", "update or replace by id",
        "swap the names", "swap the names in another place", "swap the ids", "swap the labels",
      ].contains(edit.name)
    }
    if other == "renames the base", isKnownByName { return false }
    if ["nothing", "insert", "insert the same name in another place"].contains(edit.name) {
      return false
    }
    if other == (isKnownByName ? "renames it" : "renames the base") { return true }
    var keeping: Set = [
      "update", "change the id", "change the id and what refers to it", "delete", "delete alone",
    ]
    if !isKnownByName { keeping.formUnion(["rename", "rename twice"]) }
    return !keeping.contains(edit.name)
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
    _ edit: Edit, _ kind: Kind, _ action: Action
  ) -> [String]? {
    guard !edit.hasForeignKeys else { return nil }
    let besides =
      switch kind {
      case .oneToOne, .oneToOneDeclared: ["L1", "L2", "L4"]
      case .declaredPair: ["here", "here", "here"]
      case .surrogate, .primaryKey, .declared: ["NULL", "NULL", "NULL"]
      }
    let others = [
      "base|L1|NULL|NULL", "base|L2|NULL|NULL", "base|L3|NULL|NULL", "base|L4|NULL|NULL",
      "child|cb|b|NULL", "detail|db|b|NULL", "leaf|lb|pb|NULL", "part|pb|1|b",
      "item|b|nb|\(besides[1])",
    ]
    let all = ["child|ca|a|NULL", "detail|da|a|NULL", "leaf|la|pa|NULL", "part|pa|1|a"]
    // A row that goes takes along what refers to it by CASCADE in its key. What NO ACTION
    // or RESTRICT would hold keeps it, and is with the row that has its value by now.
    let alone =
      switch action {
      case .setNull: ["leaf|la|NULL|NULL", "child|ca|NULL|NULL"]
      case .setDefault where kind == .oneToOneDeclared:
        // A default is no row of a table that is known by declared columns.
        ["leaf|la|NULL|NULL"]
      case .setDefault: ["leaf|la|NULL|NULL", "child|ca|inbox|NULL"]
      case .cascade, .deferred, .restrict, .noUpdate: ["leaf|la|NULL|NULL"]
      }
    let rows: [String]
    switch (edit.name, kind) {
    case ("change the id with foreign keys off", .surrogate),
      ("change the id with foreign keys off", .primaryKey):
      // The row is deleted, as moved to another, and references outside of keys
      // follow.
      rows =
        ["item|a|na|NULL"]
        + (action.isHolding ? all : ["child|ca|a|NULL", "leaf|la|NULL|NULL"])
    case ("change the id with foreign keys off", .oneToOne):
      rows = action.isHolding ? ["item|a|na|L1"] + all : alone
    case ("change the id with foreign keys off", _):
      rows = ["item|a|na|\(besides[0])"] + all
    case ("replace by name with foreign keys off", .declared),
      ("replace by name with foreign keys off", .declaredPair):
      // It is the same row.
      rows = ["item|a|replaced|\(besides[0])"] + all
    case ("replace by name with foreign keys off", _):
      // Where the old one is held it gives its name to the new one, which stands
      // in for it.
      rows = ["item|a|replaced|\(besides[2])"] + (action.isHolding ? all : alone)
    default: return nil
    }
    return (others + rows).sorted()
  }
}
