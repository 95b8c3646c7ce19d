import DocumentSync
import DocumentSyncGRDB
import Foundation
import GRDB

/// The app on one device: a database with notes, an engine that synchronizes it, and the list that the
/// user sees.
struct NotesApp {
  private let path: String
  private let directory: FolderDirectory
  private let device: String

  /// The database of a device is in `folder`, beside the folder that all devices share.
  init(folder: String, device: String) {
    path = "\(folder)/\(device).db"
    directory = FolderDirectory(root: "\(folder)/Shared")
    self.device = device
  }

  private var options: DocumentSyncManager.Options {
    DocumentSyncManager.Options(application: "com.example.notes", client: device)
  }

  func run() async throws {
    try await setUp()
    let database = try Note.openDatabase(at: path)
    let showing = Task { await show(database) }
    var connection: Connection? = Connection(self, database)
    while let line = readLine() {
      let words = line.split(separator: " ", maxSplits: 2).map(String.init)
      switch words.first {
      case "add" where words.count > 1:
        try await edit(database, "INSERT INTO notes (text) VALUES (?)", [words.rest(1)])
      case "edit" where words.count > 2:
        try await edit(
          database, "UPDATE notes SET text = ? WHERE text LIKE ? || '%'", [words.rest(2), words[1]])
      case "delete" where words.count > 1:
        try await edit(database, "DELETE FROM notes WHERE text LIKE ? || '%'", [words.rest(1)])
      case "offline":
        try await connection?.end()
        connection = nil
        say("offline")
      case "online":
        if connection == nil { connection = Connection(self, database) }
      case "answer": try await connection?.answer(words.rest(1))
      case "quit": break
      default:
        say("add TEXT, edit BEGIN TEXT, delete BEGIN, offline, online, answer mine|theirs, quit")
      }
      if words.first == "quit" { break }
    }
    try await connection?.end()
    showing.cancel()
    try database.close()
  }

  /// Creates the document, or gets it, or opens it: whatever is needed.
  private func setUp() async throws {
    if FileManager.default.fileExists(atPath: path) { try Note.openDatabase(at: path).close() }
    let manager = try await register()
    // If two people edit one text, this device asks which one to show.
    try await manager.setPolicies { $0.set(.ask, table: "notes", column: "text") }
    try await manager.close()
  }

  private func register() async throws -> DocumentSyncManager {
    do {
      return try await DocumentSyncManager.register(
        storeAt: path, directory: directory, document: "notes", options: options)
    } catch let error as SyncError
      where [.applicationMissing, .documentMissing].contains(error.code)
      && !FileManager.default.fileExists(atPath: path)
    {
      // This is the first device: its own database becomes the document.
      try Note.openDatabase(at: path).close()
      return try await register()
    }
  }

  private func edit(
    _ database: DatabasePool, _ statement: String, _ values: [String]
  ) async throws {
    try await database.write {
      try $0.execute(sql: statement, arguments: StatementArguments(values))
    }
  }

  /// Prints the list whenever it changes.
  private func show(_ database: DatabasePool) async {
    let texts = ValueObservation.tracking {
      try String.fetchAll($0, sql: "SELECT text FROM notes ORDER BY text")
    }.removeDuplicates()
    do {
      for try await list in texts.values(in: database) {
        say("notes: " + list.joined(separator: " | "))
      }
    } catch {
      if !Task.isCancelled { say("error: \(error)") }
    }
  }

  private func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(device): \(line)\n".utf8))
  }
}

extension NotesApp {
  /// The time during which the device is online.
  private final class Connection: Sendable {
    private let app: NotesApp
    private let engine: SyncEngine
    private let running: Task<Void, any Error>
    private let notifying: Task<Void, any Error>
    private let listening: Task<Void, Never>

    init(_ app: NotesApp, _ database: DatabasePool) {
      self.app = app
      var options = app.options
      options.events = SyncEvents()
      let engine = SyncEngine(documents: [
        .init(storeAt: app.path, directory: app.directory, options: options)
      ])
      self.engine = engine
      // GRDB's observations hear of what the engine changes.
      let notifier = DatabaseChangeNotifier(events: options.events, database: database)
      notifying = Task { try await notifier.run() }
      let events = engine.events.makeAsyncIterator()
      listening = Task {
        var events = events
        while let event = await events.next() { await Self.hear(event, app, engine) }
      }
      running = Task { try await engine.run() }
    }

    private static func hear(
      _ event: SyncEngine.Event, _ app: NotesApp, _ engine: SyncEngine
    ) async {
      switch event {
      case .conflicts(_, _, let questions) where !questions.isEmpty:
        do {
          let manager = try await engine.manager(storeAt: app.path)
          for conflict in try await manager.conflicts(onlyOpen: true) {
            app.say(
              "question: mine “\(text(conflict.local))” or theirs “\(text(conflict.remote))”?")
          }
        } catch {
          app.say("error: \(error.localizedDescription)")
        }
      case .directoryAway: app.say("the shared folder is away")
      case .failed(_, let error, let retry) where retry != .whenDirectoryReturns:
        app.say("error: \(error.message)")
      default: break
      }
    }

    private static func text(_ side: Conflict.Side) -> String {
      guard case .text(let text) = side.cells?.first?.value else { return "" }
      return String(decoding: text, as: UTF8.self)
    }

    /// Answers all questions that are open.
    func answer(_ side: String) async throws {
      let manager = try await engine.manager(storeAt: app.path)
      for conflict in try await manager.conflicts(onlyOpen: true) {
        try await manager.resolveConflict(
          conflict.number, by: side == "mine" ? .local : .remote)
      }
      app.say("answered")
    }

    func end() async throws {
      try await engine.close()
      try await running.value
      await listening.value
      try await notifying.value
    }
  }
}

extension [String] {
  /// The words from one on.
  fileprivate func rest(_ first: Int) -> String { dropFirst(first).joined(separator: " ") }
}
