import ArgumentParser
import Foundation
import SyncModel
import SyncStore

/// Measures how much of a document's file is bookkeeping, after all of it was
/// made under sync and all devices have synchronized.
struct BookkeepingProbe: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bookkeeping",
    abstract: "Measures the share of bookkeeping in a document that was made under sync.",
    discussion: """
      Every row is inserted under sync, and a tenth of them updated, in steps that the other \
      device applies. Documentation/Performance.md has the figures.
      """)

  /// How the rows are known.
  enum Keys: String, CaseIterable, ExpressibleByArgument {
    case natural, surrogate

    var column: String {
      self == .natural ? "id TEXT PRIMARY KEY NOT NULL" : "id INTEGER PRIMARY KEY"
    }
    /// The greatest share that is accepted.
    var target: Double { self == .natural ? 0.08 : 0.15 }
  }

  @Option(name: .customLong("count"), help: "The rows of the document.")
  var rows = 1_000_000
  @Option(help: "How the rows are known: natural or surrogate. Both if not given.")
  var keys: Keys?
  @Option(
    name: .customLong("folder"),
    help: "Where the files go. Default: the folder for temporary files.")
  var directory: String?

  func run() throws {
    for keys in keys.map({ [$0] }) ?? Keys.allCases {
      let folder = base.appending(path: "documentsync-bookkeeping-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let outcome = Result { try measure(keys, in: folder) }
      try FileManager.default.removeItem(at: folder)
      try outcome.get()
    }
  }

  private var base: URL {
    directory.map { URL(filePath: $0, directoryHint: .isDirectory) }
      ?? FileManager.default.temporaryDirectory
  }

  private func measure(_ keys: Keys, in folder: URL) throws {
    let schema = """
      CREATE TABLE notes (\(keys.column), title TEXT NOT NULL, body TEXT NOT NULL, \
      rating INTEGER NOT NULL, edited INTEGER NOT NULL)
      """
    let pair = try StorePair(directory: folder, schema: schema)
    let program = try Database(path: StorePair.path(of: .first, in: folder))
    let step = max(rows / 20, 1)
    for start in stride(from: 0, to: rows, by: step) {
      try insert(start..<min(start + step, rows), keys, to: program)
      try exchange(pair)
    }
    // Every tenth row, in four goes over the whole table.
    for turn in 0..<4 {
      try program.execute(
        "UPDATE notes SET rating = rating + 1, edited = edited + 60 "
          + "WHERE rowid % 10 = 3 AND rowid / 10 % 4 = \(turn)")
      try exchange(pair)
    }
    for device in Device.allCases {
      let database = try Database(path: StorePair.path(of: device, in: folder))
      try database.checkpoint()
      try report(keys, device, database)
    }
  }

  private func insert(_ range: Range<Int>, _ keys: Keys, to database: Database) throws {
    var source = NoteSource(seed: UInt64(range.lowerBound) &+ 20_260_101)
    let columns =
      keys == .natural ? "(id, title, body, rating, edited)" : "(title, body, rating, edited)"
    let statement = try database.prepare(
      "INSERT INTO notes \(columns) VALUES (\(keys == .natural ? "?1, " : "")?2, ?3, ?4, ?5)")
    var text: [UInt8] = []
    for start in stride(from: range.lowerBound, to: range.upperBound, by: 1_000) {
      try database.transaction {
        for _ in start..<min(start + 1_000, range.upperBound) {
          text.removeAll(keepingCapacity: true)
          let note = source.append(to: &text)
          try text.withUnsafeBytes { text in
            if keys == .natural {
              statement.bind(UnsafeRawBufferPointer(rebasing: text[note.id]), at: 1)
            }
            // What has no key of its own has as much more in the title.
            let title =
              keys == .natural ? note.title : note.id.lowerBound..<note.title.upperBound
            statement.bind(UnsafeRawBufferPointer(rebasing: text[title]), at: 2)
            statement.bind(UnsafeRawBufferPointer(rebasing: text[note.body]), at: 3)
            statement.bind(note.rating, at: 4)
            statement.bind(note.edited, at: 5)
            try statement.run()
          }
        }
      }
    }
  }

  /// The other device applies everything, and the author learns of it.
  private func exchange(_ pair: StorePair) throws {
    let report = try pair.first.seal()
    for changeSet in report.changeSets {
      let bytes = try pair.first.sealedBytes(changeSet.number)
      try pair.first.markPublished(changeSet.number)
      try pair.second.apply(files: [bytes])
    }
    let applied = try pair.second.appliedVector().number(of: pair.first.binding.client)
    try pair.first.forgetSealedBytes(through: applied)
  }

  private func report(_ keys: Keys, _ device: Device, _ database: Database) throws {
    let pages = try database.integer("PRAGMA page_count")
    let free = try database.integer("PRAGMA freelist_count")
    let size = try database.integer("PRAGMA page_size")
    let own = try database.integer(
      "SELECT count(*) FROM dbstat WHERE name IN "
        + "(SELECT name FROM sqlite_schema WHERE tbl_name GLOB 'docsync_*')")
    let share = Double(own) / Double(pages - free)
    let rowBytes =
      try database.integer("SELECT sum(pgsize) FROM dbstat WHERE name = 'notes'") / Int64(rows)
    func text(_ pages: Int64) -> String { String(format: "%.1f MB", Double(pages * size) / 1e6) }
    func percent(_ share: Double) -> String { String(format: "%.2f %%", share * 100) }
    print(
      "\(keys.rawValue), \(device.rawValue): \(rows) rows of \(rowBytes) bytes; file \(text(pages)), "
        + "free \(text(free)), bookkeeping \(text(own)): \(percent(share)) of the used pages, "
        + "\(percent(Double(own) / Double(pages))) of the file; target \(percent(keys.target)): "
        + (share <= keys.target ? "reached" : "NOT REACHED"))
    let tables = try database.prepare(
      "SELECT tbl_name, count(*) FROM dbstat JOIN sqlite_schema USING (name) "
        + "WHERE tbl_name GLOB 'docsync_*' GROUP BY tbl_name ORDER BY 2 DESC LIMIT 4")
    while try tables.step() { print("  \(tables.text(at: 0)): \(text(tables.integer(at: 1)))") }
  }
}
