import SyncModel
import Testing

@testable import SyncStore

/// The differences that a program notices between its database and one without our triggers
/// (`Documentation/Questions.md`). SQLite (3.40.1) makes them, whatever triggers do.
@Suite struct TriggerDifferencesTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Runs a statement in a database that is under sync, and in one that is not. Returns what
  /// SQLite answers, and the rows of the table, of each.
  private func answers(
    _ schema: String, _ statement: String, in start: String = ""
  ) throws -> (synchronized: [String], plain: [String]) {
    let device = try scratch.devices(1, schema)[0]
    let plain = try Program(scratch.path + "/plain.db")
    try plain.run(schema)
    func answer(_ run: (String) throws -> Void) throws -> String {
      if !start.isEmpty { try run(start) }
      do {
        try run(statement)
        return "done"
      } catch let failure as Program.Failure {
        return failure.description.components(separatedBy: ":")[0]
      }
    }
    let rows = "SELECT * FROM t ORDER BY 1"
    return (
      try [answer(device.run)] + device.rows(rows), try [answer(plain.run)] + plain.rows(rows)
    )
  }

  private static let strict = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER) STRICT;
    INSERT INTO t VALUES (1, 1, 1), (2, 2, 2);
    """

  /// SQLite checks the types of a new row first if a trigger runs before insertions.
  @Test(arguments: ["INSERT OR IGNORE INTO t VALUES", "INSERT INTO t VALUES"])
  func aStrictTableChecksTypesBeforeOtherConstraints(verb: String) throws {
    let further = verb.contains("IGNORE") ? "" : " ON CONFLICT DO NOTHING"
    let (synchronized, plain) = try answers(Self.strict, "\(verb) (1, 3, 'text')\(further)")
    #expect(synchronized == ["cannot store TEXT value in INTEGER column t.b", "1|1|1", "2|2|2"])
    #expect(plain == ["done", "1|1|1", "2|2|2"])
  }

  /// Without triggers SQLite leaves a part of such a statement in a transaction.
  @Test(arguments: [
    "UPDATE t SET b = CASE id WHEN 2 THEN 'text' ELSE 10 END",
    "INSERT OR IGNORE INTO t VALUES (3, 3, 10), (4, 4, 'text')",
  ])
  func aRefusedStatementOfAStrictTableIsUndone(statement: String) throws {
    let (synchronized, plain) = try answers(Self.strict, statement, in: "BEGIN")
    #expect(synchronized.dropFirst() == ["1|1|1", "2|2|2"])
    #expect(plain.dropFirst() != ["1|1|1", "2|2|2"])
    #expect(synchronized[0] == plain[0])
  }

  /// Without triggers SQLite accepts a reference that leads to no row.
  @Test func aReplacementMayNotBreakAReference() throws {
    let (synchronized, plain) = try answers(
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, up INTEGER REFERENCES t ON DELETE SET NULL);
      INSERT INTO t VALUES (1, 1, NULL);
      """, "INSERT OR REPLACE INTO t VALUES (1, 1, 7)")
    #expect(synchronized == ["FOREIGN KEY constraint failed", "1|1|NULL"])
    #expect(plain == ["done", "1|1|7"])
  }
}
