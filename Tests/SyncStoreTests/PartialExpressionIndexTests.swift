import SyncModel
import Testing

@testable import SyncStore

/// Unique indexes over expressions that SQLite evaluates only for rows that meet a condition, since
/// for others they fail.
@Suite struct PartialExpressionIndexTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let documents = """
    CREATE TABLE document (id INTEGER PRIMARY KEY, data TEXT, n INTEGER, kind TEXT COLLATE NOCASE);
    CREATE UNIQUE INDEX document_id ON document (json_extract(data, '$.id'))
      WHERE json_valid(data);
    CREATE UNIQUE INDEX document_n ON document (abs(n)) WHERE n > -9 AND kind = 'a';
    """

  private func titles(_ device: Device) throws -> [String] {
    try device.rows("SELECT data FROM document ORDER BY 1")
  }

  private func exchange(_ devices: [Device]) throws {
    for receiver in devices {
      for sender in devices where sender !== receiver { try receiver.receive(from: sender) }
    }
    for device in devices { try device.checkIntegrity() }
  }

  @Test func rowsThatDoNotMeetTheConditionAreAccepted() throws {
    let devices = try scratch.devices(2, Self.documents)
    try devices[0].run("INSERT INTO document (data, n) VALUES ('no JSON', -9223372036854775808)")
    try devices[0].run("INSERT INTO document (data, n) VALUES ('none either', 1)")
    try devices[0].run("UPDATE document SET data = 'nothing', n = -9223372036854775808 WHERE n = 1")
    try exchange(devices)
    #expect(try titles(devices[1]) == ["no JSON", "nothing"])
  }

  @Test func rowsThatMeetItReplaceOthers() throws {
    let devices = try scratch.devices(2, Self.documents)
    try devices[0].run(#"INSERT INTO document (data) VALUES ('{"id": 1, "v": 1}'), ('text')"#)
    try devices[0].run("INSERT INTO document (data, n, kind) VALUES ('n 5', 5, 'A')")
    try exchange(devices)
    try devices[1].run(#"REPLACE INTO document (id, data) VALUES (7, '{"id": 1, "v": 2}')"#)
    try devices[1].run("REPLACE INTO document (id, data, n, kind) VALUES (8, 'n -5', -5, 'A')")
    try exchange(devices)
    #expect(try titles(devices[0]) == ["n -5", "text", #"{"id": 1, "v": 2}"#])
    #expect(try titles(devices[1]) == titles(devices[0]))
  }

  /// SQLite 3.40 counts JSON functions among what a schema that is not trusted may not call.
  @Test func rowsOfTablesWithJSONAreExchanged() throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE event (id TEXT PRIMARY KEY, data TEXT NOT NULL CHECK (json_valid(data)),
        kind TEXT AS (json_extract(data, '$.kind')) STORED, place AS (data ->> '$.place'));
      CREATE INDEX event_place ON event (place);
      INSERT INTO event VALUES ('a', '{"kind": "talk", "place": 1}');
      """)
    try devices[1].run("UPDATE event SET data = json_set(data, '$.place', 2)")
    try devices[0].run(#"INSERT INTO event VALUES ('b', '{"kind": "walk"}')"#)
    try exchange(devices)
    for device in devices {
      #expect(
        try device.rows("SELECT id, kind, place FROM event ORDER BY id")
          == ["a|talk|2", "b|walk|NULL"])
    }
  }

  /// The program's own statements, too: one side of AND or OR guards the other one.
  @Test(arguments: [
    "json_valid(data) AND json_extract(data, '$.id') IS NOT NULL",
    "data IS NOT NULL AND (kind = 'text' OR json_extract(data, '$.id') > 0)",
  ])
  func aConditionMayGuardItself(condition: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE document (id INTEGER PRIMARY KEY, data TEXT, kind TEXT DEFAULT 'text');
      CREATE UNIQUE INDEX u ON document (coalesce(json_valid(data), 0), data) WHERE \(condition);
      """)
    try devices[0].run("INSERT INTO document (data) VALUES ('hello')")
    try devices[0].run("UPDATE document SET data = 'still no JSON'")
    try converge(devices, "SELECT data FROM document", ["still no JSON"])
    try devices[1].run(
      "REPLACE INTO document (id, data) VALUES (9, 'still no JSON'), (10, 'other')")
    try exchange(devices)
    #expect(try titles(devices[0]) == titles(devices[1]))
  }

  /// In a DEFAULT clause a word is a text, also in a program for which double quotes name columns only.
  @Test(arguments: ["en", "\"en\"", "'en'"])
  func aWordMayBeTheDefaultOfAUniqueColumn(value: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE name (id INTEGER PRIMARY KEY, k TEXT, lang TEXT NOT NULL DEFAULT \(value),
        UNIQUE (k, lang));
      """)
    try devices[0].run("INSERT INTO name (k) VALUES ('a')")
    try devices[0].run("UPDATE name SET k = 'b'")
    try converge(devices, "SELECT k, lang FROM name", ["b|en"])
    try devices[1].run("REPLACE INTO name (k, lang) VALUES ('b', 'en')")
    try converge(devices, "SELECT k, lang FROM name", ["b|en"])
  }
}
