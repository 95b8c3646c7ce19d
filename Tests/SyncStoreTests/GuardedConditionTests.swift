import SyncModel
import Testing

@testable import SyncStore

/// Conditions with a part that SQLite evaluates only where another part allows it.
@Suite struct GuardedConditionTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let schema = """
    CREATE TABLE note (id TEXT PRIMARY KEY, name TEXT UNIQUE, kind TEXT NOT NULL, body TEXT,
      CHECK (kind = 'text' OR json_extract(body, '$.v') > 0));
    INSERT INTO note VALUES ('x', 'x', 'json', '{"v":1}');
    """

  /// Hidden rows are held against the condition without the table.
  @Test func aHiddenRowDoesNotFail() throws {
    let devices = try scratch.devices(2, Self.schema)
    for (index, device) in devices.enumerated() {
      try device.run("INSERT INTO note VALUES ('n\(index)', 'same', 'text', 'no JSON')")
    }
    try converge(devices, "SELECT count(*) FROM note", ["2"])
    #expect(try devices[0].store.parkedRows().map(\.reason) == [.uniqueValueTaken])
    try expectSound(devices)
    try devices[0].run("DELETE FROM note WHERE name = 'same'")
    try converge(devices, "SELECT count(*) FROM note WHERE name = 'same'", ["1"])
    try expectSound(devices)
  }

  @Test func editsOfBothPartsConverge() throws {
    let devices = try scratch.devices(2, Self.schema)
    try devices[0].run("UPDATE note SET body = '{\"v\":2}'")
    try devices[1].run("UPDATE note SET kind = 'text', body = 'no JSON'")
    try exchange(devices)
    let rows = try devices[0].rows("SELECT kind, body FROM note")
    try converge(devices, "SELECT kind, body FROM note", rows)
    try expectSound(devices)
  }
}
