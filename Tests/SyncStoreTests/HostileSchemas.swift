extension HostileSchema {
  /// Schemas in which rows depend on each other by more than foreign keys
  /// outside of keys.
  static let entangled: [HostileSchema] = [keptBoth, oneToOne, join, declared]

  /// The version that loses lives on as a row of its own.
  private static let keptBoth = HostileSchema(
    "CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE); "
      + "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body, "
      + "tag INTEGER REFERENCES tag (id) ON DELETE SET NULL); "
      + "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT, n INTEGER DEFAULT 4); "
      + "INSERT INTO tag VALUES (1, 'a'), (2, 'b'); "
      + "INSERT INTO note VALUES ('x', 't', 'b', 1), ('y', 'u', NULL, NULL); "
      + "INSERT INTO task VALUES (1, 'p', 1), (2, 'q', 2)",
    edits: [
      "UPDATE note SET title = title || 'w' WHERE id = 'x'",
      "UPDATE note SET body = 7, tag = 2", "INSERT INTO note VALUES ('z', 'v', 1.5, 1)",
      "DELETE FROM note WHERE id = 'x'", "INSERT INTO note VALUES ('x', 'back', NULL, 2)",
      "UPDATE task SET title = 'r', n = n + 1", "UPDATE task SET n = 9 WHERE id = 1",
      "DELETE FROM task WHERE id = 2", "INSERT INTO task (title) VALUES ('s')",
      "DELETE FROM tag WHERE id = 1", "UPDATE tag SET name = 'c' WHERE id = 2",
    ]
  ) { $0.tableMergeTypes = ["note": .keepBoth, "task": .keepBoth] }

  /// An integer key that is a reference itself, and a chain of them.
  private static let oneToOne = HostileSchema(
    "CREATE TABLE place (id INTEGER PRIMARY KEY, name TEXT UNIQUE); "
      + "CREATE TABLE restaurant (place_id INTEGER PRIMARY KEY "
      + "REFERENCES place (id) ON DELETE CASCADE ON UPDATE CASCADE, kitchen TEXT); "
      + "CREATE TABLE pizzeria (restaurant_id INTEGER PRIMARY KEY "
      + "REFERENCES restaurant ON DELETE CASCADE ON UPDATE CASCADE, oven); "
      + "CREATE TABLE waiter (id INTEGER PRIMARY KEY, name TEXT, "
      + "restaurant INTEGER REFERENCES restaurant (place_id) ON DELETE SET NULL ON UPDATE CASCADE); "
      + "INSERT INTO place VALUES (1, 'a'), (2, 'b'), (3, 'c'); "
      + "INSERT INTO restaurant VALUES (1, 'k'), (2, 'l'); INSERT INTO pizzeria VALUES (2, 1); "
      + "INSERT INTO waiter VALUES (1, 'w', 2)",
    edits: [
      "INSERT INTO place (name) VALUES ('d')",
      "INSERT INTO restaurant VALUES (3, 'm')",
      "INSERT INTO restaurant SELECT max(id), 'n' FROM place",
      "INSERT INTO pizzeria SELECT max(place_id), 2 FROM restaurant",
      "INSERT INTO waiter (name, restaurant) SELECT 'v', max(place_id) FROM restaurant",
      "UPDATE restaurant SET kitchen = 'o'", "UPDATE pizzeria SET oven = 3",
      "UPDATE place SET id = 12 WHERE id = 2",
      "UPDATE restaurant SET place_id = 3 WHERE place_id = 1",
      "DELETE FROM restaurant WHERE place_id = 2", "DELETE FROM place WHERE id = 1",
      "UPDATE place SET name = 'A' WHERE name = 'a'", "UPDATE waiter SET restaurant = 1",
    ])

  /// A table of nothing but references, one whose key is made of a reference and
  /// a text, and rows that refer to such keys.
  private static let join = HostileSchema(
    "CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT UNIQUE); "
      + "CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE); "
      + "CREATE TABLE note_tag (note INTEGER REFERENCES note (id) ON DELETE CASCADE, "
      + "tag INTEGER REFERENCES tag (id) ON DELETE CASCADE ON UPDATE CASCADE, weight INTEGER, "
      + "PRIMARY KEY (note, tag)) WITHOUT ROWID; "
      + "CREATE TABLE page (note INTEGER NOT NULL REFERENCES note (id) ON DELETE CASCADE, "
      + "name TEXT, text, PRIMARY KEY (note, name)); "
      + "CREATE TABLE mark (id TEXT PRIMARY KEY, note INTEGER, tag INTEGER, "
      + "FOREIGN KEY (note, tag) REFERENCES note_tag (note, tag) ON DELETE SET NULL ON UPDATE CASCADE); "
      + "INSERT INTO note VALUES (1, 't'), (2, 'u'); INSERT INTO tag VALUES (1, 'a'), (2, 'b'); "
      + "INSERT INTO note_tag VALUES (1, 1, 5), (2, 1, 6); INSERT INTO page VALUES (1, 'p', 'x'); "
      + "INSERT INTO mark VALUES ('m', 1, 1)",
    edits: [
      "INSERT INTO note (title) VALUES ('v')", "INSERT INTO tag (name) VALUES ('c')",
      "INSERT INTO note_tag SELECT max(note.id), max(tag.id), 1 FROM note, tag",
      "UPDATE note_tag SET weight = weight + 1", "UPDATE note_tag SET tag = 2 WHERE note = 1",
      "DELETE FROM note_tag WHERE note = 2", "INSERT OR REPLACE INTO note_tag VALUES (2, 2, 9)",
      "INSERT INTO page SELECT max(id), 'q', 1.5 FROM note", "UPDATE page SET name = 'P'",
      "INSERT INTO mark SELECT 'n', note, tag FROM note_tag LIMIT 1",
      "DELETE FROM tag WHERE id = 1",
      "UPDATE note SET title = 'T' WHERE id = 1", "UPDATE tag SET id = 11 WHERE id = 2",
    ])

  /// References that the schema does not declare, among them one where 0 means
  /// none, and one in a key.
  private static let declared = HostileSchema(
    "CREATE TABLE post (id INTEGER PRIMARY KEY, title TEXT UNIQUE, "
      + "parent INTEGER NOT NULL DEFAULT 0, author); "
      + "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT); "
      + "CREATE TABLE meta (person INTEGER, name TEXT, value, PRIMARY KEY (person, name)); "
      + "INSERT INTO person VALUES (1, 'a'), (2, 'b'); "
      + "INSERT INTO post VALUES (1, 't', 0, 1), (2, 'u', 1, 2), (3, 'v', 77, ''); "
      + "INSERT INTO meta VALUES (1, 'k', 'x'), (9, 'k', 'y')",
    edits: [
      "INSERT INTO person (name) VALUES ('c')",
      "INSERT INTO post (title, parent, author) SELECT 'w', max(id), 1 FROM post",
      "UPDATE post SET parent = 3 WHERE id = 2", "UPDATE post SET parent = 0",
      "UPDATE post SET author = (SELECT max(id) FROM person)",
      "UPDATE post SET author = '' WHERE id = 1", "DELETE FROM post WHERE id = 1",
      "DELETE FROM person WHERE id = 1", "INSERT INTO meta SELECT max(id), 'l', 1 FROM person",
      "UPDATE meta SET value = 'z'", "UPDATE meta SET person = 2 WHERE person = 9",
      "DELETE FROM meta WHERE person = 1", "INSERT INTO post (id, title) VALUES (77, 'x')",
    ]
  ) {
    $0.references = ["post": ["parent": "post", "author": "person"], "meta": ["person": "person"]]
  }
}
