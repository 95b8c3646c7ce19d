import Dispatch
import Foundation
import GRDB
import Synchronization

/// Connections of a store that only read. They read the last committed state while a transaction runs
/// on the connection that writes (``StoreConnection``).
///
/// Whatever keeps a connection from answering, ``use(_:)`` returns `nil`, and the caller asks the
/// connection that writes instead: nothing can go wrong here that cannot go wrong there.
///
/// In WAL mode, SQLite never keeps them waiting. In rollback mode, a transaction locks them out while
/// it writes to the file: at its commit, and from the moment when its changes no longer fit into the
/// cache. It has to wait in turn for those that read already (``waitForCalls(atMost:)``), so a reading
/// must be short there.
///
/// A connection is opened when it is first needed. Each call has one of its own, so that no reading
/// waits for another.
///
/// <https://www.sqlite.org/lockingv3.html>
final class StoreReaders: Sendable {
  private let path: String
  private let onStatement: (@Sendable (String) -> Void)?
  /// The file that the connection of the store has open; `nil` if it is not known.
  private let file: FileNumber?
  /// The calls that run.
  private let calls = DispatchGroup()
  private let state = Mutex(State())

  private struct State {
    var idle: [DatabaseQueue] = []
    var isClosed = false
  }

  /// The number of connections that stay open.
  private static let idleLimit = 2

  /// Call it before the connection that writes is opened: a file that takes the place of the store
  /// afterwards is then never taken for it.
  init(_ path: String, onStatement: (@Sendable (String) -> Void)?) {
    self.path = path
    self.onStatement = onStatement
    file = FileNumber(path)
  }

  /// Runs `body` on a connection, outside of a transaction. Returns `nil` if that fails for any reason:
  /// the store cannot be read without waiting or without writing, another file is in its place, it is
  /// closed, or `body` throws. Then the caller has to ask the connection that writes, whose error
  /// counts.
  func use<Result>(_ body: (Database) throws -> Result) -> Result? {
    guard begin() else { return nil }
    defer { calls.leave() }
    do {
      guard let queue = try takeIdle() ?? open() else { return nil }
      let result = try queue.writeWithoutTransaction(body)
      keep(queue)
      return result
    } catch {
      // The connection is let go of, which closes it.
      return nil
    }
  }

  /// Whether the file that the connection of the store has open is still at the path.
  var isFileInPlace: Bool { file != nil && file == FileNumber(path) }

  /// Whether there is a write-ahead log with content.
  var hasLog: Bool {
    var information = stat()
    return stat(FileNumber.resolved(path) + "-wal", &information) == 0 && information.st_size > 0
  }

  /// Waits until no call runs, at most for a time. Returns whether that is so.
  @discardableResult
  func waitForCalls(atMost seconds: Double) -> Bool {
    calls.wait(timeout: .now() + seconds) == .success
  }

  /// Closes all connections, after the calls that run. Later calls return `nil`. Throws the first
  /// error of a connection, after all were closed.
  func close() throws {
    state.withLock { $0.isClosed = true }
    calls.wait()
    let idle = state.withLock { state in
      defer { state.idle = [] }
      return state.idle
    }
    let results = idle.map { queue in Result { try queue.close() } }
    for result in results { try result.get() }
  }

  /// Closes the connections that no call uses.
  func letGo() { state.withLock { $0.idle = [] } }

  // MARK: - The connections

  /// Notes a call that begins; returns whether it may.
  private func begin() -> Bool {
    state.withLock { state in
      if !state.isClosed { calls.enter() }
      return !state.isClosed
    }
  }

  private func takeIdle() -> DatabaseQueue? { state.withLock { $0.idle.popLast() } }

  /// Keeps a connection for the next call, unless there are enough.
  private func keep(_ queue: DatabaseQueue) {
    state.withLock { state in
      if state.idle.count < Self.idleLimit { state.idle.append(queue) }
    }
  }

  /// Returns a new connection; `nil` if another file is in the place of the store, which is another
  /// database.
  private func open() throws -> DatabaseQueue? {
    guard file != nil, file == FileNumber(path) else { return nil }
    var configuration = Configuration()
    configuration.readonly = true
    configuration.foreignKeysEnabled = false
    configuration.busyMode = .immediateError
    configuration.label = "docsync.reading"
    configuration.prepareDatabase { [onStatement] database in
      // Not query_only: computing the digest needs a temporary table.
      try StoreConnection.prepare(database, onStatement)
    }
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    // It may have come there meanwhile.
    guard file == FileNumber(path) else {
      try queue.close()
      return nil
    }
    return queue
  }
}

/// The number by which the file system knows a file.
private struct FileNumber: Equatable {
  private let device: UInt64
  private let inode: UInt64

  /// Returns the path of the file to which links lead.
  static func resolved(_ path: String) -> String {
    URL(fileURLWithPath: path).resolvingSymlinksInPath().path
  }

  /// Follows links, as SQLite does. Returns `nil` if there is no file, or it cannot be looked at.
  init?(_ path: String) {
    var information = stat()
    guard stat(path, &information) == 0 else { return nil }
    device = UInt64(truncatingIfNeeded: information.st_dev)
    inode = UInt64(truncatingIfNeeded: information.st_ino)
  }
}
