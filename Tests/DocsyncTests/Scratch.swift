import Foundation
import GRDB
import Testing

/// A folder for one test, with an empty shared directory in it; gone when it
/// is let go.
final class Scratch {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "docsync-command-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path + "/shared", withIntermediateDirectories: true)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      Issue.record("the scratch folder stayed: \(error)")
    }
  }

  /// Runs the command in the folder.
  func docsync(_ arguments: String...) throws -> Executable.Result {
    try Executable.run(arguments, in: path)
  }

  /// Runs the command; anything but success is an issue.
  @discardableResult
  func succeed(
    _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Executable.Result {
    let result = try Executable.run(arguments, in: path)
    #expect(result.status == 0, "\(result.errors)", sourceLocation: sourceLocation)
    #expect(result.errors == "", sourceLocation: sourceLocation)
    return result
  }

  /// Runs SQL as any program would.
  func sql(_ store: String, _ statements: String) throws {
    try withQueue(store) { queue in try queue.write { try $0.execute(sql: statements) } }
  }

  /// Makes a database from SQL that has transactions of its own.
  func load(_ store: String, _ dump: String) throws {
    try withQueue(store) { queue in
      try queue.writeWithoutTransaction { try $0.execute(sql: dump) }
    }
  }

  /// The first column of a query's rows, as text.
  func column(_ store: String, _ query: String) throws -> [String] {
    try withQueue(store) { queue in
      try queue.read { database in
        try Row.fetchAll(database, sql: query).map { "\($0[0] as DatabaseValue)" }
      }
    }
  }

  private func withQueue<Result>(
    _ store: String, _ body: (DatabaseQueue) throws -> Result
  ) throws -> Result {
    var configuration = Configuration()
    // A watching command may read at that moment.
    configuration.busyMode = .timeout(60)
    let queue = try DatabaseQueue(path: path + "/" + store, configuration: configuration)
    do {
      let result = try body(queue)
      try queue.close()
      return result
    } catch {
      try queue.close()
      throw error
    }
  }

  /// A database of notes, not under sync.
  func makeNotes(_ name: String) throws {
    try sql(
      name,
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE tags (name TEXT PRIMARY KEY, weight INTEGER);
      INSERT INTO notes (title) VALUES ('one'), ('two');
      """)
  }

  /// Two devices, `a.db` and `b.db`, that share the notes.
  func makeTwoDevices() throws {
    try makeNotes("a.db")
    try succeed("init", "a.db", "--directory", "shared", "--document", "notes", "--client", "A")
    try succeed("join", "b.db", "--directory", "shared", "--client", "B")
  }

  /// Every file and folder below, with its bytes; not the empty files that
  /// processes lock.
  func contents() throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: path)
    where !name.hasSuffix("-docsync-lock") {
      var isFolder: ObjCBool = false
      let file = path + "/" + name
      guard FileManager.default.fileExists(atPath: file, isDirectory: &isFolder) else { continue }
      contents[name] =
        isFolder.boolValue ? Data() : try Data(contentsOf: URL(fileURLWithPath: file))
    }
    return contents
  }

  /// Expects a command to fail in a certain way, with and without `--json`,
  /// to say which path and what to do, and to change nothing.
  func expectFailure(
    _ arguments: String..., status: Int32, code: String, path: String?,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try expectFailure(
      arguments, status: status, code: code, path: path, sourceLocation: sourceLocation)
  }

  /// As the other, for arguments that are not known beforehand.
  func expectFailure(
    _ arguments: [String], status: Int32, code: String, path: String?,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let before = try contents()
    let text = try Executable.run(arguments, in: self.path)
    #expect(text.status == status, "\(text.errors)", sourceLocation: sourceLocation)
    #expect(text.output == "", sourceLocation: sourceLocation)
    if let path {
      #expect(text.errors.contains("path: \(path)\n"), sourceLocation: sourceLocation)
      #expect(text.errors.contains("next: "), sourceLocation: sourceLocation)
    }

    let json = try Executable.run(arguments + ["--json"], in: self.path)
    #expect(json.status == status, sourceLocation: sourceLocation)
    #expect(json.errors == "", sourceLocation: sourceLocation)
    let error = try #require(
      try json.json()["error"] as? [String: Any], sourceLocation: sourceLocation)
    #expect(error["code"] as? String == code, sourceLocation: sourceLocation)
    #expect(error["path"] as? String == path, sourceLocation: sourceLocation)
    #expect((error["message"] as? String)?.isEmpty == false, sourceLocation: sourceLocation)
    #expect((error["remedy"] as? String)?.isEmpty == false, sourceLocation: sourceLocation)

    let after = try contents()
    for name in Set(before.keys).union(after.keys).sorted() where before[name] != after[name] {
      Issue.record("\(name) changed", sourceLocation: sourceLocation)
    }
  }
}
