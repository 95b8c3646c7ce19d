import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Whether two rows stand in each other's way, and whether a reference leads
/// somewhere, is decided as SQLite itself would: it is asked first.
@Suite struct ConstraintAgreementTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Values that are equal in some columns and not in others.
  private static let values = [
    "1", "1.0", "'1'", "'1.0'", "x'31'", "-0.0", "NULL", "''", "'a'", "'A'", "'a '", "x'61'",
    "'ä'", "'Ä'", "9007199254740993", "9007199254740992.0", "' 1'", "char(97, 0, 98)",
    "char(97, 0, 99)",
  ]

  private static let pairs = values.flatMap { left in values.map { (left, $0) } }

  @Test(
    arguments: ["", "TEXT", "INTEGER", "REAL"], ["BINARY", "NOCASE", "RTRIM"])
  func rowsStandInEachOthersWayIfSQLiteSaysSo(_ type: String, _ collation: String) throws {
    try checkUnique(column: "\(type) COLLATE \(collation)", index: "UNIQUE INDEX i ON t (g, u)")
  }

  @Test(arguments: [
    "(g, lower(u))", "(g, u || '')", "(g, +u)", "(g, u COLLATE NOCASE)", "(u, g)",
    "(g, u) WHERE typeof(u) <> 'blob'", "(g, v)", "(g, abs(u) COLLATE RTRIM)",
  ])
  func rowsStandInEachOthersWayIfTheIndexSaysSo(_ terms: String) throws {
    try checkUnique(column: "", index: "UNIQUE INDEX i ON t \(terms)")
    try checkUnique(column: "TEXT COLLATE RTRIM", index: "UNIQUE INDEX i ON t \(terms)")
  }

  private func checkUnique(
    column: String, index: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let schema = """
      CREATE TABLE t (id TEXT PRIMARY KEY, g INTEGER, u \(column), v AS (upper(u)));
      CREATE \(index);
      """
    let oracle = try Program(scratch.path + "/oracle\(UInt64.random(in: 0 ... .max)).db")
    try oracle.run(schema)
    let folder = try Scratch()
    let devices = try folder.devices(2, schema)
    try devices[0].setClock(offset: -500)
    try devices[1].setClock(offset: -400)
    try devices[0].run("BEGIN")
    try devices[1].run("BEGIN")
    var expected: [String] = []
    for (group, pair) in Self.pairs.enumerated() {
      let left = "INSERT INTO t VALUES ('a\(group)', \(group), \(pair.0))"
      let right = "INSERT INTO t VALUES ('b\(group)', \(group), \(pair.1))"
      try devices[0].run(left)
      try devices[1].run(right)
      try oracle.run(left)
      do {
        try oracle.run(right)
        expected.append("a\(group)")
      } catch let error as Program.Failure {
        guard error.description.contains("UNIQUE") else { throw error }
      }
      expected.append("b\(group)")
    }
    try devices[0].run("COMMIT")
    try devices[1].run("COMMIT")
    try converge(devices, sourceLocation: sourceLocation)
    let shown = Set(try devices[0].rows("SELECT id FROM t"))
    let wrong = shown.symmetricDifference(expected).sorted()
    #expect(
      wrong.map { "\($0): \(Self.pairs[Int($0.dropFirst()) ?? 0])" } == [],
      "\(column) \(index)", sourceLocation: sourceLocation)
  }

  @Test(
    arguments: ["", "TEXT", "INTEGER", "REAL", "TEXT COLLATE NOCASE"],
    ["", "TEXT", "INTEGER", "TEXT COLLATE RTRIM"])
  func aReferenceLeadsSomewhereIfSQLiteSaysSo(_ parent: String, _ child: String) throws {
    for key in ["PRIMARY KEY (g, u)", "id TEXT PRIMARY KEY, UNIQUE (g, u)"] {
      let id = key.hasPrefix("id") ? "id TEXT PRIMARY KEY, " : ""
      let unique = key.hasPrefix("id") ? "UNIQUE (g, u)" : key
      let schema = """
        CREATE TABLE p (\(id)g INTEGER, u \(parent), \(unique));
        CREATE TABLE c (id TEXT PRIMARY KEY, g INTEGER, u \(child), \
        FOREIGN KEY (g, u) REFERENCES p (g, u));
        """
      let oracle = try Program(scratch.path + "/oracle\(UInt64.random(in: 0 ... .max)).db")
      try oracle.run(schema)
      let folder = try Scratch()
      let devices = try folder.devices(2, schema)
      try oracle.run("PRAGMA foreign_keys = OFF; BEGIN")
      try devices[1].run("PRAGMA foreign_keys = OFF; BEGIN")
      try devices[0].run("BEGIN")
      for (group, pair) in Self.pairs.enumerated() {
        let row =
          id.isEmpty ? "(\(group), \(pair.0))" : "('p\(group)', \(group), \(pair.0))"
        let insertion = "INSERT INTO c VALUES ('c\(group)', \(group), \(pair.1))"
        try oracle.run("INSERT INTO p VALUES \(row)")
        try oracle.run(insertion)
        try devices[0].run("INSERT INTO p VALUES \(row)")
        try devices[1].run(insertion)
      }
      try devices[0].run("COMMIT")
      try devices[1].run("COMMIT")
      try converge(devices)
      // The check decides, since it has to find nothing after every commit: a
      // statement sometimes takes what the check objects to.
      try oracle.run("COMMIT")
      let expected = try oracle.rows(
        "SELECT id FROM c WHERE rowid NOT IN "
          + "(SELECT rowid FROM pragma_foreign_key_check('c'))")
      let shown = Set(try devices[0].rows("SELECT id FROM c"))
      let wrong = shown.symmetricDifference(expected).sorted()
      #expect(
        wrong.map { "\($0): \(Self.pairs[Int($0.dropFirst()) ?? 0])" } == [],
        "\(key), \(parent), \(child)")
    }
  }
}
