import SyncModel
import Testing

@testable import SyncStore

/// Merging decides cell by cell, and does not know trees (`Documentation/Merging.md`).
@Suite struct TreeTests {
  @Test func rowsThatAreMovedBelowOneAnotherFormACircle() throws {
    let scratch = try Scratch()
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE task (
        id INTEGER PRIMARY KEY, parent INTEGER REFERENCES task (id) ON DELETE CASCADE, name TEXT);
      INSERT INTO task VALUES (1, NULL, 'r'), (2, 1, 'A'), (3, 1, 'B');
      """)
    try devices[0].run("UPDATE task SET parent = 3 WHERE name = 'A'")
    try devices[1].run("UPDATE task SET parent = 2 WHERE name = 'B'")
    try converge(devices, "SELECT name, parent FROM task ORDER BY 1", ["A|3", "B|2", "r|NULL"])
  }
}
