import SyncModel
import Testing

@testable import SyncStore

/// The rows of tables that stay on the device, when a database with rows becomes a store of a
/// document: their references lead to the same rows as before.
@Suite struct MergedLocalRowsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private static let excluding = AppTriggerTests.excluding("cache")

  private static func persons(_ columns: String, onConflict: String = "") -> String {
    """
    CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT UNIQUE, \(columns));
    CREATE TABLE cache (person_id INTEGER PRIMARY KEY \(onConflict) REFERENCES person, v TEXT);
    """
  }

  private func cache(_ device: Device) throws -> [String] {
    try device.rows(
      "SELECT email, v FROM cache LEFT JOIN person p ON p.id = person_id ORDER BY 1, 2")
  }

  /// Checks that the next synchronization reports that rows were left out.
  private func expectWarning(
    _ device: Device, _ words: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let warnings = try device.store.seal().warnings.filter { $0.code == .localValueRefused }
    #expect(warnings.map(\.table) == ["cache"], sourceLocation: sourceLocation)
    #expect(
      warnings.first?.message.hasPrefix(words) ?? false, "\(warnings)",
      sourceLocation: sourceLocation)
  }

  // MARK: - The columns of a reference

  /// SQLite allows it as long as foreign keys are off.
  @Test(arguments: [false, true])
  func aReferenceWithFewerColumnsThanTheKeyLeadsNowhere(isInPlace: Bool) throws {
    let (devices, _) = try scratch.merge(
      """
      CREATE TABLE m (a TEXT NOT NULL, b TEXT NOT NULL, v TEXT, PRIMARY KEY (a, b));
      CREATE TABLE cache (id INTEGER PRIMARY KEY, p TEXT REFERENCES m);
      """,
      document: "INSERT INTO m VALUES ('x', 'y', 'one');",
      local: "INSERT INTO m VALUES ('x', 'z', 'two'); INSERT INTO cache VALUES (1, 'x');",
      configuration: Self.excluding, isInPlace: isInPlace)
    #expect(try devices[1].rows("SELECT * FROM cache") == ["1|x"])
    try exchange(devices)
    for device in devices {
      #expect(try device.rows("SELECT a, b, v FROM m ORDER BY b") == ["x|y|one", "x|z|two"])
    }
  }

  /// The reference names no columns: it is to those of the key, in the order of the key.
  @Test(arguments: [false, true])
  func aReferenceIsToTheDeclaredKey(isInPlace: Bool) throws {
    let (devices, _) = try scratch.merge(
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT UNIQUE);
      CREATE TABLE m (owner INTEGER NOT NULL REFERENCES person, n INTEGER NOT NULL, v TEXT,
        PRIMARY KEY (n, owner));
      CREATE TABLE cache (n INTEGER, owner INTEGER, w TEXT, FOREIGN KEY (n, owner) REFERENCES m);
      """,
      document: """
        INSERT INTO person VALUES (1, 'a'), (2, 'b'); INSERT INTO m VALUES (2, 1, 'of b');
        """,
      local: """
        INSERT INTO person VALUES (1, 'b'), (2, 'a'); INSERT INTO m VALUES (1, 2, 'also of b'), (2, 1, 'of a');
        INSERT INTO cache VALUES (2, 1, 'also of b'), (1, 2, 'of a');
        """, configuration: Self.excluding, isInPlace: isInPlace)
    #expect(
      try devices[1].rows("SELECT v, w FROM cache JOIN m USING (n, owner) ORDER BY 1")
        == ["also of b|also of b", "of a|of a"])
    try converge(devices)
    try expectSound(devices)
  }

  // MARK: - Rows that get the same values

  /// Each row finds the other one in its place.
  @Test(arguments: [false, true], ["", "ON CONFLICT REPLACE"])
  func rowsExchangeTheirNumbers(isInPlace: Bool, onConflict: String) throws {
    let (devices, merged) = try scratch.merge(
      Self.persons("name TEXT", onConflict: onConflict),
      document: "INSERT INTO person VALUES (1, 'a', 'Ann'), (2, 'b', 'Bob');",
      local: """
        INSERT INTO person VALUES (1, 'b', 'Bob'), (2, 'a', 'Ann'), (3, 'c', 'Cid');
        INSERT INTO cache VALUES (1, 'of b'), (2, 'of a'), (3, 'of c');
        """, configuration: Self.excluding, isInPlace: isInPlace)
    #expect(merged.localTables == ["cache"])
    #expect(try cache(devices[1]) == ["a|of a", "b|of b", "c|of c"])
    #expect(try devices[1].store.seal().warnings == [])
    try converge(devices)
    try expectSound(devices)
  }

  /// Nothing but numbers changes, so nothing is deleted for a trigger.
  @Test func triggersDoNotRunForRowsThatExchangeTheirNumbers() throws {
    let (devices, _) = try scratch.merge(
      Self.persons("name TEXT") + """
        CREATE TABLE trail (id INTEGER PRIMARY KEY, what TEXT);
        CREATE TRIGGER cache_ad AFTER DELETE ON cache BEGIN INSERT INTO trail (what) VALUES (OLD.v); END;
        CREATE TRIGGER cache_au AFTER UPDATE ON cache BEGIN INSERT INTO trail (what) VALUES (OLD.v); END;
        """,
      document: "INSERT INTO person VALUES (1, 'a', 'Ann'), (2, 'b', 'Bob');",
      local: """
        INSERT INTO person VALUES (1, 'b', 'Bob'), (2, 'a', 'Ann');
        INSERT INTO cache VALUES (1, 'of b'), (2, 'of a');
        """, configuration: AppTriggerTests.excluding("cache", "trail"), isInPlace: true)
    #expect(try cache(devices[1]) == ["a|of a", "b|of b"])
    #expect(try devices[1].rows("SELECT what FROM trail") == [])
    try devices[1].run("UPDATE cache SET v = 'other' WHERE v = 'of a'")
    #expect(try devices[1].rows("SELECT what FROM trail") == ["of a"])
  }

  /// They keep their rowids, by which full-text tables refer to them.
  @Test(arguments: [false, true])
  func rowsWithoutAnIntegerKeyKeepTheirOrder(isInPlace: Bool) throws {
    let (devices, _) = try scratch.merge(
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT UNIQUE);
      CREATE TABLE cache (person_id INTEGER UNIQUE REFERENCES person, v TEXT);
      """,
      document: "INSERT INTO person VALUES (1, 'a'), (2, 'b');",
      local: """
        INSERT INTO person VALUES (1, 'b'), (2, 'a');
        INSERT INTO cache (rowid, person_id, v)
          VALUES (3, NULL, 'none'), (5, 9, 'lost'), (7, 1, 'of b'), (9, 2, 'of a');
        """, configuration: Self.excluding, isInPlace: isInPlace)
    #expect(
      try devices[1].rows(
        "SELECT c.rowid, v, email FROM cache c LEFT JOIN person ON id = person_id ORDER BY c.rowid")
        == ["3|none|NULL", "5|lost|NULL", "7|of b|b", "9|of a|a"])
  }

  /// Two rows of the database are the same row of the document, by different values.
  @Test(arguments: [false, true], ["", "ON CONFLICT REPLACE"])
  func oneOfTwoRowsOfTheSameRowIsLeftOut(isInPlace: Bool, onConflict: String) throws {
    let (devices, _) = try scratch.merge(
      Self.persons("phone TEXT UNIQUE", onConflict: onConflict),
      document: "INSERT INTO person VALUES (1, 'a', '1');",
      local: """
        INSERT INTO person VALUES (1, 'a', '9'), (2, 'z', '1'), (3, 'c', '3');
        INSERT INTO cache VALUES (1, 'one'), (2, 'two'), (3, 'three');
        """, configuration: Self.excluding, isInPlace: isInPlace)
    #expect(try cache(devices[1]) == ["a|one", "c|three"])
    try expectWarning(devices[1], "1 row of cache")
    try converge(devices)
    try expectSound(devices)
  }

  /// The document refuses some rows, so that their numbers are those of others there.
  @Test(arguments: [false, true], ["", "ON CONFLICT REPLACE"])
  func aRowThatLeadsToTheDocumentComesFirst(isInPlace: Bool, onConflict: String) throws {
    let (devices, merged) = try scratch.merge(
      Self.persons("age INTEGER CHECK (age >= 0)", onConflict: onConflict),
      document: "INSERT INTO person VALUES (1, 'a', 30), (2, 'b', 40);",
      local: """
        INSERT INTO person VALUES (1, 'x', -1), (2, 'y', -1), (3, 'a', 30), (4, 'b', 40), (5, 'c', 50);
        INSERT INTO cache VALUES (1, 'of x'), (2, 'of y'), (3, 'of a'), (4, 'of b'), (5, 'of c');
        """, configuration: Self.excluding,
      localSchema: Self.persons("age INTEGER", onConflict: onConflict), isInPlace: isInPlace)
    #expect(merged.refusedRows == 2)
    #expect(try cache(devices[1]) == ["a|of a", "b|of b", "c|of c"])
    try expectWarning(devices[1], "2 rows of cache")
    try converge(devices)
    try expectSound(devices)
  }
}
