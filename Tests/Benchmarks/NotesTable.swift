import CSQLite
import SyncModel

/// The table of notes, and the workloads as plain SQL on it.
enum NotesTable {
  static let schema = """
    CREATE TABLE notes (
      id TEXT PRIMARY KEY NOT NULL,
      title TEXT NOT NULL,
      body TEXT NOT NULL,
      rating INTEGER NOT NULL,
      edited INTEGER NOT NULL
    )
    """

  /// Executes a workload's writes of one device.
  ///
  /// With `onlyIfNewer` the updates of W5 pass over rows that were edited
  /// later: all that plain SQL has against conflicts.
  static func write(
    _ workload: Workload, by device: Device = .first, of dataset: Dataset,
    to database: Database, batching: Batching, onlyIfNewer: Bool = false
  ) throws {
    try dataset.text.withUnsafeBytes { text in
      func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[range])
      }
      switch workload {
      case .insert:
        let statement = try database.prepare("INSERT INTO notes VALUES (?1, ?2, ?3, ?4, ?5)")
        try each(dataset.notes, in: database, batching: batching) { note in
          statement.bind(slice(note.id), at: 1)
          statement.bind(slice(note.title), at: 2)
          statement.bind(slice(note.body), at: 3)
          statement.bind(note.rating, at: 4)
          statement.bind(note.edited, at: 5)
          try statement.run()
        }
      case .updateAll:
        let statement = try database.prepare("UPDATE notes SET rating = ?2 WHERE id = ?1")
        try each(dataset.ratings, in: database, batching: batching) { edit in
          statement.bind(slice(dataset.notes[edit.row].id), at: 1)
          statement.bind(edit.rating, at: 2)
          try statement.run()
        }
      case .delete:
        let statement = try database.prepare("DELETE FROM notes WHERE id = ?1")
        try each(dataset.deletions, in: database, batching: batching) { row in
          statement.bind(slice(dataset.notes[row].id), at: 1)
          try statement.run()
        }
      case .updateSingly:
        let statement = try database.prepare(
          "UPDATE notes SET title = ?2, edited = ?3 WHERE id = ?1")
        try each(dataset.titles, in: database, batching: batching) { edit in
          statement.bind(slice(dataset.notes[edit.row].id), at: 1)
          statement.bind(slice(edit.title), at: 2)
          statement.bind(edit.edited, at: 3)
          try statement.run()
        }
      case .conflict:
        let statement = try database.prepare(
          "UPDATE notes SET rating = ?2, edited = ?3 WHERE id = ?1"
            + (onlyIfNewer ? " AND edited < ?3" : ""))
        try each(dataset.conflicts[device] ?? [], in: database, batching: batching) { edit in
          statement.bind(slice(dataset.notes[edit.row].id), at: 1)
          statement.bind(edit.rating, at: 2)
          statement.bind(edit.edited, at: 3)
          try statement.run()
        }
      }
    }
  }

  /// Inserts `count` rows, 1,000 to a transaction, without holding them.
  static func insert(_ count: Int, seed: UInt64, to database: Database) throws {
    var source = NoteSource(seed: seed)
    var text: [UInt8] = []
    let statement = try database.prepare("INSERT INTO notes VALUES (?1, ?2, ?3, ?4, ?5)")
    for start in stride(from: 0, to: count, by: 1_000) {
      try database.transaction {
        for _ in start..<min(start + 1_000, count) {
          text.removeAll(keepingCapacity: true)
          let note = source.append(to: &text)
          try text.withUnsafeBytes { text in
            for (index, range) in [note.id, note.title, note.body].enumerated() {
              statement.bind(UnsafeRawBufferPointer(rebasing: text[range]), at: Int32(index + 1))
            }
            statement.bind(note.rating, at: 4)
            statement.bind(note.edited, at: 5)
            try statement.run()
          }
        }
      }
    }
  }

  /// Calls `body` for each element, within transactions.
  private static func each<Element>(
    _ elements: [Element], in database: Database, batching: Batching,
    body: (Element) throws -> Void
  ) throws {
    let size: Int
    switch batching {
    case .autocommit: return try elements.forEach(body)
    case .transactions(let of): size = of
    case .oneTransaction: size = max(elements.count, 1)
    }
    for start in stride(from: 0, to: elements.count, by: size) {
      try database.transaction {
        for index in start..<min(start + size, elements.count) { try body(elements[index]) }
      }
    }
  }

  /// The changed values of a workload as lines of text with tabs: the least
  /// that anyone would send.
  static func dump(_ workload: Workload, by device: Device, of dataset: Dataset) -> [UInt8] {
    var lines: [UInt8] = []
    func line(_ row: Int, _ ranges: [Range<Int>], _ integers: [Int64]) {
      lines += dataset.text[dataset.notes[row].id]
      for range in ranges {
        lines.append(UInt8(ascii: "\t"))
        lines += dataset.text[range]
      }
      for integer in integers { lines += Array("\t\(integer)".utf8) }
      lines.append(UInt8(ascii: "\n"))
    }
    switch workload {
    case .insert:
      for (row, note) in dataset.notes.enumerated() {
        line(row, [note.title, note.body], [note.rating, note.edited])
      }
    case .updateAll:
      for edit in dataset.ratings { line(edit.row, [], [edit.rating]) }
    case .delete:
      for row in dataset.deletions { line(row, [], []) }
    case .updateSingly:
      for edit in dataset.titles { line(edit.row, [edit.title], [edit.edited]) }
    case .conflict:
      for edit in dataset.conflicts[device] ?? [] {
        line(edit.row, [], [edit.rating, edit.edited])
      }
    }
    return lines
  }

  /// The number of rows and a hash of all their values, in order of key.
  struct Contents: Hashable {
    var rowCount: Int
    var hash: ContentHash
  }

  /// Reads the whole table.
  static func contents(of database: Database) throws -> Contents {
    let statement = try database.prepare(
      "SELECT id, title, body, rating, edited FROM notes ORDER BY id")
    var bytes: [UInt8] = []
    var count = 0
    while try statement.step() {
      count += 1
      for column in 0..<Int32(5) {
        let kind = sqlite3_column_type(statement.handle, column)
        let content = sqlite3_column_blob(statement.handle, column)
        let length = Int(sqlite3_column_bytes(statement.handle, column))
        bytes.append(UInt8(truncatingIfNeeded: kind))
        withUnsafeBytes(of: UInt32(length).littleEndian) { bytes += $0 }
        bytes += UnsafeRawBufferPointer(start: content, count: length)
      }
    }
    return Contents(rowCount: count, hash: ContentHash(of: bytes))
  }

  /// The number of rows of W5 that hold a value which neither device wrote.
  static func strangers(after dataset: Dataset, in database: Database) throws -> Int {
    var expected: [Int: [(rating: Int64, edited: Int64)]] = [:]
    for edit in dataset.conflicts.values.joined() {
      expected[edit.row, default: []].append((edit.rating, edit.edited))
    }
    let statement = try database.prepare("SELECT rating, edited FROM notes WHERE id = ?1")
    var strangers = 0
    try dataset.text.withUnsafeBytes { text in
      for (row, values) in expected {
        statement.bind(UnsafeRawBufferPointer(rebasing: text[dataset.notes[row].id]), at: 1)
        let found = try statement.step()
        let rating = sqlite3_column_int64(statement.handle, 0)
        let edited = sqlite3_column_int64(statement.handle, 1)
        if !found || !values.contains(where: { $0.rating == rating && $0.edited == edited }) {
          strangers += 1
        }
        sqlite3_reset(statement.handle)
      }
    }
    return strangers
  }
}
