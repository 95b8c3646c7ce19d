import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Change sets that are well-formed and senseless: each is refused, by every
/// device, or has one result on every device, whatever comes first; and no
/// store is left in a state that verifying objects to.
///
/// ```
/// DOCSYNC_HOSTILE=100000 swift test --filter HostileChangeSetTests
/// ```
///
/// tries so many files, and 2,400 without it. What fails is printed as small as
/// `HostileShrinking` can make it.
@Suite struct HostileChangeSetTests {
  private static let filesPerFleet = 40

  private static var fleets: Int {
    let files = ProcessInfo.processInfo.environment["DOCSYNC_HOSTILE"].flatMap(Int.init)
    return max(1, (files ?? 2_400) / filesPerFleet / schemas.count)
  }

  private static let schemas = ordinary + HostileSchema.entangled

  private static let ordinary: [HostileSchema] = [
    HostileSchema(
      "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, n INTEGER, r REAL, x); "
        + "INSERT INTO note VALUES ('a', 't', 1, 1.5, x'01'), ('b', 'u', 2, 2, 'x')",
      edits: [
        "INSERT INTO note VALUES ('c', 'v', 3, 3.5, 1)", "UPDATE note SET title = 'w', n = 7",
        "DELETE FROM note WHERE id = 'b'", "INSERT INTO note VALUES ('b', 'again', 0, 0, NULL)",
        "UPDATE note SET id = 'A' WHERE id = 'a'", "INSERT OR REPLACE INTO note (id) VALUES ('d')",
      ]),
    HostileSchema(
      "CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT UNIQUE COLLATE NOCASE); "
        + "CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, "
        + "folder INTEGER REFERENCES folder (id) ON DELETE CASCADE); "
        + "INSERT INTO folder VALUES (1, 'a'), (2, 'b'); INSERT INTO note VALUES (1, 't', 1)",
      edits: [
        "INSERT INTO folder (name) VALUES ('c')",
        "INSERT INTO note (title, folder) VALUES ('n', 2)",
        "UPDATE note SET folder = 2", "DELETE FROM folder WHERE id = 1",
        "UPDATE folder SET name = 'B2' WHERE id = 2", "UPDATE folder SET id = 9 WHERE id = 2",
        "INSERT INTO note (title) VALUES (x'00')",
      ]),
    HostileSchema(
      "CREATE TABLE tag (name TEXT COLLATE NOCASE, kind, note TEXT, PRIMARY KEY (name, kind)) "
        + "WITHOUT ROWID; CREATE TABLE use (tag TEXT COLLATE NOCASE, kind, "
        + "id TEXT PRIMARY KEY, FOREIGN KEY (tag, kind) REFERENCES tag (name, kind) "
        + "ON DELETE SET NULL ON UPDATE CASCADE); "
        + "INSERT INTO tag VALUES ('A', 1, 'x'), ('b', 'k', 'y'); INSERT INTO use VALUES ('a', 1, 'u')",
      edits: [
        "INSERT INTO tag VALUES ('c', 1.5, NULL)", "UPDATE tag SET name = 'C' WHERE name = 'c'",
        "UPDATE tag SET note = 'z'", "INSERT INTO use VALUES ('B', 'k', 'v')",
        "DELETE FROM tag WHERE name = 'a'", "UPDATE tag SET kind = 1.0 WHERE kind = 1",
      ]),
    HostileSchema(
      "CREATE TABLE item (code INTEGER, part INT, n INTEGER CHECK (n < 100), t TEXT NOT NULL, "
        + "PRIMARY KEY (code, part)) STRICT; INSERT INTO item VALUES (1, 1, 1, 'a'), (2, 1, 2, 'b')",
      edits: [
        "INSERT INTO item VALUES (3, 1, 3, 'c')", "UPDATE item SET n = n + 1",
        "DELETE FROM item WHERE code = 2", "UPDATE item SET part = 2 WHERE code = 1",
        "INSERT OR REPLACE INTO item VALUES (1, 1, 9, 'd')",
      ]),
    HostileSchema(
      "CREATE TABLE article (id TEXT PRIMARY KEY, name TEXT, stock INTEGER); "
        + "INSERT INTO article VALUES ('a', 'x', 5), ('b', 'y', 0)",
      edits: [
        "UPDATE article SET stock = stock + 3", "INSERT INTO article VALUES ('c', 'z', 1)",
        "DELETE FROM article WHERE id = 'a'", "UPDATE article SET stock = 50, name = 'n'",
        "INSERT INTO article VALUES ('a', 'back', 2)",
      ]
    ) { $0.tableMergeTypes = ["article": .editWins] },
    HostileSchema(
      "CREATE TABLE shelf (id INTEGER PRIMARY KEY, name TEXT, spare INTEGER DEFAULT 7); "
        + "CREATE TABLE article (id TEXT PRIMARY KEY, name TEXT, stock INTEGER DEFAULT 1, "
        + "price REAL, shelf INTEGER REFERENCES shelf (id)); INSERT INTO shelf VALUES (1, 's', 2); "
        + "INSERT INTO article VALUES ('a', 'x', 5, 1.5, 1), ('b', 'y', 0, 2, NULL)",
      edits: [
        "UPDATE article SET stock = stock + 3, price = price + 0.5",
        "INSERT INTO article VALUES ('c', 'z', 1, 1, 1)", "DELETE FROM article WHERE id = 'a'",
        "UPDATE article SET stock = 50, name = 'n' WHERE id = 'b'", "DELETE FROM shelf",
        "INSERT INTO article VALUES ('a', 'back', 2, NULL, NULL)",
        "UPDATE article SET stock = NULL WHERE id = 'b'", "INSERT INTO shelf (name) VALUES ('t')",
        "UPDATE article SET shelf = (SELECT max(id) FROM shelf)",
      ]
    ) { $0.columnMergeTypes = ["article": ["stock": .counter, "price": .counter]] },
    HostileSchema(
      "CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, kind); "
        + "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, tag INTEGER REFERENCES tag (id) "
        + "ON DELETE SET NULL, parent TEXT REFERENCES note (id) ON DELETE SET DEFAULT); "
        + "INSERT INTO tag VALUES (1, 'a', 1), (2, 'b', NULL); "
        + "INSERT INTO note VALUES ('x', 't', 1, NULL), ('y', 'u', 2, 'x')",
      edits: [
        "INSERT INTO tag (name, kind) VALUES ('c', 1.5)",
        "UPDATE tag SET name = 'A' WHERE name = 'a'",
        "INSERT INTO note VALUES ('z', 'v', 1, 'y')", "DELETE FROM tag WHERE name = 'b'",
        "UPDATE note SET title = title || 'w'", "DELETE FROM note WHERE id = 'x'",
        "UPDATE note SET parent = 'y' WHERE id = 'x'", "UPDATE tag SET kind = 2",
      ]
    ) {
      $0.identities = ["tag": .columns(["name"])]
      $0.tableMergeTypes = ["note": .wholeRow]
    },
    HostileSchema(
      "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT DEFAULT 'none', n INTEGER, r REAL); "
        + "CREATE TABLE thing (id INTEGER PRIMARY KEY, a INTEGER DEFAULT 3, b)",
      edits: [
        "INSERT OR IGNORE INTO note VALUES ('a', 't', 1, 1.5)", "DELETE FROM note WHERE id = 'a'",
        "INSERT INTO note (id) VALUES ('b')", "UPDATE note SET title = 'u', n = n + 1",
        "INSERT INTO thing (b) VALUES ('x')", "UPDATE thing SET a = a + 1",
        "DELETE FROM thing WHERE id = 1", "INSERT OR REPLACE INTO note VALUES ('c', 'w', 2, 0)",
      ]),
  ]

  @Test(arguments: schemas.indices) func everyFileHasOneResultOrIsRefused(schema: Int) throws {
    var tried = HostileFleet.Counts()
    for seed in 0..<Self.fleets {
      let fleet = try HostileFleet(Self.schemas[schema], seed: UInt64(seed))
      tried.add(try fleet.run(Self.filesPerFleet))
      if !tried.problems.isEmpty { break }
    }
    for problem in tried.problems { Issue.record("schema \(schema): \(problem)") }
    // Neither is everything refused, nor nothing.
    guard tried.problems.isEmpty else { return }
    #expect(tried.applied > tried.files / 10 && tried.refused > tried.files / 10)
  }

  /// Schemas and seeds of which a file was refused only if it came in one order, or of which a row
  /// was taken over whose key refers to what is no identity.
  @Test(arguments: [(6, 75), (11, 169)]) func whatHasFailedHoldsNow(schema: Int, seed: UInt64)
    throws
  {
    let fleet = try HostileFleet(Self.schemas[schema], seed: seed)
    let tried = try fleet.run(Self.filesPerFleet)
    for problem in tried.problems { Issue.record("\(problem)") }
    #expect(tried.files == Self.filesPerFleet)
  }
}
