import CSQLite
import Foundation
import GRDB

/// A connection that reads a database of another program and changes nothing, in the database or
/// beside it. The database may be read-only.
///
/// If no program has a database in WAL mode open, the connection reads it as if it could not
/// change; ``finish()`` throws if it did. If SQLite would have to write before it could read, as
/// after a crash, the connection reads a private copy.
final class ReadOnlyDatabase {
  let queue: DatabaseQueue
  private let path: String
  private let files: [FileState]
  private let isWatched: Bool
  private let copy: String?

  /// The attributes that show whether a file was written to.
  private struct FileState: Equatable {
    var size: Int
    var changed: Date?
    var inode: Int

    init(_ path: String) {
      do {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        size = (attributes[.size] as? NSNumber)?.intValue ?? 0
        inode = (attributes[.systemFileNumber] as? NSNumber)?.intValue ?? 0
        changed = attributes[.modificationDate] as? Date
      } catch {
        // The file does not exist; that is a state too.
        (size, inode, changed) = (-1, 0, nil)
      }
    }

    var isThere: Bool { size >= 0 }
  }

  /// Opens the database. Throws errors of SQLite, and those of the file system if the database has
  /// to be copied.
  init(path: String, busyTimeout: Double) throws {
    // SQLite looks for the companions beside the file that a link leads to.
    let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    self.path = path
    files = Self.states(path)
    let wal = files[1]
    let isWAL = try Self.isWAL(path)
    if isWAL, !wal.isThere || wal.size == 0, !(wal.isThere && files[2].isThere) {
      isWatched = true
      if sqlite3_compileoption_used("USE_URI") != 0 {
        copy = nil
        queue = try Self.open(
          "file:\(Self.escaped(path))?immutable=1", isReadOnly: true, busyTimeout: busyTimeout)
      } else {
        (queue, copy) = try Self.openCopy(of: path, busyTimeout: busyTimeout)
      }
      return
    }
    if isWAL, !files[2].isThere {
      isWatched = true
      (queue, copy) = try Self.openCopy(of: path, busyTimeout: busyTimeout)
      return
    }
    do {
      queue = try Self.open(path, isReadOnly: true, busyTimeout: busyTimeout)
      (isWatched, copy) = (false, nil)
    } catch let error as DatabaseError
      where [.SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
    {
      isWatched = true
      (queue, copy) = try Self.openCopy(of: path, busyTimeout: busyTimeout)
    }
  }

  /// Closes the connection. Throws `SQLITE_BUSY` if another program changed the database meanwhile:
  /// then the data that was read is not valid.
  func finish() throws {
    try queue.close()
    if let copy { try FileManager.default.removeItem(atPath: copy) }
    // The index of a WAL is not part of its content.
    guard isWatched, Self.states(path)[0...1] != files[0...1] else { return }
    throw DatabaseError(
      resultCode: .SQLITE_BUSY, message: "the database was changed while it was read")
  }

  private static func states(_ path: String) -> [FileState] {
    ["", "-wal", "-shm", "-journal"].map { FileState(path + $0) }
  }

  /// Returns whether a database is in WAL mode, by its header.
  ///
  /// <https://www.sqlite.org/fileformat2.html#file_format_version_numbers>
  private static func isWAL(_ path: String) throws -> Bool {
    let header = try DatabaseFile(path).read(20, at: 0)
    return header.count == 20 && header[19] == 2
  }

  private static func escaped(_ path: String) -> String {
    path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? path
  }

  private static func open(
    _ path: String, isReadOnly: Bool, busyTimeout: Double
  ) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = isReadOnly
    configuration.foreignKeysEnabled = false
    configuration.busyMode = .timeout(busyTimeout)
    configuration.label = "DocumentSync verify"
    configuration.prepareDatabase { database in
      try database.execute(sql: "PRAGMA cache_size = -32000")
      if let connection = database.sqliteConnection {
        csqlite_set_triggers_enabled(connection, 0)
      }
    }
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    // Reading the first page shows whether the database can be read.
    _ = try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA main.schema_version") }
    return queue
  }

  private static func openCopy(
    of path: String, busyTimeout: Double
  ) throws -> (DatabaseQueue, String) {
    let folder = NSTemporaryDirectory() + "/docsync-verify-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    do {
      try DatabaseFile(path).copy(to: folder + "/database")
      for companion in ["-wal", "-journal"]
      where FileManager.default.fileExists(atPath: path + companion) {
        let copy = folder + "/database" + companion
        try FileManager.default.copyItem(atPath: path + companion, toPath: copy)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: copy)
      }
      let queue = try open(folder + "/database", isReadOnly: false, busyTimeout: busyTimeout)
      return (queue, folder)
    } catch {
      try FileManager.default.removeItem(atPath: folder)
      throw error
    }
  }
}
