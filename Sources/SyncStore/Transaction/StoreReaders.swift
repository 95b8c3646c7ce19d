import Foundation
import GRDB
import SyncModel
import Synchronization

/// Connections of a store that only read. They read the last committed state while a transaction runs
/// on the connection that writes (``StoreConnection``).
///
/// In WAL mode, SQLite never keeps them waiting. In rollback mode a transaction locks them out while it
/// writes to the file: at its commit, and from the moment when its changes no longer fit into the cache
/// (<https://www.sqlite.org/lockingv3.html>). There they are not waited for either, but a commit waits
/// for them, at most for ``StoreOptions/busyTimeout``: a reading must be short.
///
/// A connection is opened when it is first needed. Each call has one of its own, so that no reading
/// waits for another.
final class StoreReaders: Sendable {
  private let path: String
  private let onStatement: (@Sendable (String) -> Void)?
  /// The file that the connection of the store has open; `nil` if it is not known.
  private let file: FileNumber?
  private let state = Mutex(State())

  private struct State {
    var all: [DatabaseQueue] = []
    var idle: [DatabaseQueue] = []
    var isClosed = false
  }

  /// The number of connections that stay open.
  private static let idleLimit = 2

  init(_ path: String, onStatement: (@Sendable (String) -> Void)?) {
    self.path = path
    self.onStatement = onStatement
    file = FileNumber(path)
  }

  /// Runs `body` on a connection, outside of a transaction. Returns `nil` if the store cannot be read
  /// at present without waiting or without writing, and if the file is not in its place any more.
  /// Throws ``StoreError``: `closed` after ``close()``.
  func use<Result>(_ body: (Database) throws -> Result) throws -> Result? {
    try StoreError.mapping(path) {
      do {
        guard let queue = try take() else { return nil }
        defer { giveBack(queue) }
        return try queue.writeWithoutTransaction(body)
      } catch let error as DatabaseError
        where [.SQLITE_BUSY, .SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
      {
        return nil
      }
    }
  }

  /// Closes all connections, after the calls that run. Later calls throw.
  func close() throws {
    let all = state.withLock { state in
      state.isClosed = true
      state.idle = []
      return state.all
    }
    for queue in all { try queue.close() }
  }

  // MARK: - The connections

  private func take() throws -> DatabaseQueue? {
    let idle = try state.withLock { state in
      guard !state.isClosed else { throw Self.closed }
      return state.idle.popLast()
    }
    if let idle { return idle }
    let new = try open()
    // A file that has taken the place of the store since is another database.
    guard file != nil, file == FileNumber(path) else {
      try new.close()
      return nil
    }
    let isClosed = state.withLock { state in
      if !state.isClosed { state.all.append(new) }
      return state.isClosed
    }
    guard !isClosed else {
      try new.close()
      throw Self.closed
    }
    return new
  }

  /// Keeps the connection for the next call; lets go of it if there are enough, which closes it.
  private func giveBack(_ queue: DatabaseQueue) {
    state.withLock { state in
      guard !state.isClosed else { return }
      if state.idle.count < Self.idleLimit {
        state.idle.append(queue)
      } else {
        state.all.removeAll { $0 === queue }
      }
    }
  }

  private func open() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.foreignKeysEnabled = false
    configuration.busyMode = .immediateError
    configuration.label = "docsync reading"
    configuration.prepareDatabase { [onStatement] database in
      // Not query_only: computing the digest needs a temporary table.
      try StoreConnection.prepare(database, onStatement)
    }
    return try DatabaseQueue(path: path, configuration: configuration)
  }

  private static var closed: DatabaseError {
    DatabaseError(resultCode: .SQLITE_MISUSE, message: "connection is closed")
  }
}

/// The number by which the file system knows a file.
private struct FileNumber: Equatable {
  private let device: UInt64
  private let inode: UInt64

  /// Follows links, as SQLite does. Returns `nil` if there is no file, or it cannot be looked at.
  init?(_ path: String) {
    var information = stat()
    guard stat(path, &information) == 0 else { return nil }
    device = UInt64(truncatingIfNeeded: information.st_dev)
    inode = UInt64(truncatingIfNeeded: information.st_ino)
  }
}
