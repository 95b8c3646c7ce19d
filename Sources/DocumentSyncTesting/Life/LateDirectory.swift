import SyncDirectory
import SyncModel

/// One device's view of the shared directory. The files of a generation arrive late; removed files
/// disappear at once.
final class LateDirectory: SharedDirectory {
  private struct State {
    var isOpen = true
    var arrived: Set<RelativePath> = []
  }

  private let base: MemoryDirectory
  private let ledger: LifeLedger
  private let state = Locked(State())

  init(_ base: MemoryDirectory, ledger: LifeLedger) {
    self.base = base
    self.ledger = ledger
  }

  /// Whether every published file arrives at once.
  var isOpen: Bool {
    get { state.withLock { $0.isOpen } }
    set { state.withLock { $0.isOpen = newValue } }
  }

  /// Makes some of the existing files arrive, each with a chance of two in three.
  func arrive(salt: UInt64) {
    var dice = SeededRandom(seed: salt)
    let paths = base.items.keys.sorted()
    state.withLock { state in
      for path in paths where dice.next() % 3 > 0 { state.arrived.insert(path) }
    }
  }

  private func isVisible(_ path: RelativePath) -> Bool {
    // Documents/<document>/<generation>/<kind>/…
    guard path.components.count >= 5 else { return true }
    return state.withLock { $0.isOpen || $0.arrived.contains(path) }
      || base.items[path] == .folder
  }

  var location: String { base.location }

  func check(for access: DirectoryAccess) throws { try base.check(for: access) }

  func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    try base.list(folder).filter { entry in folder.appending(entry.name).map(isVisible) ?? true }
  }

  func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try requireVisible(path, .read)
    return try base.read(path, limit: limit)
  }

  func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    try requireVisible(path, .download)
    try base.download(path, to: localFile, limit: limit, progress: progress)
  }

  func publish(_ content: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws {
    try base.publish(content, at: path, by: client)
    ledger.note(content, at: path)
    state.withLock { _ = $0.arrived.insert(path) }
  }

  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    try base.upload(localFile: localFile, to: path, by: client, progress: progress)
    ledger.note(try base.read(path, limit: .max), at: path)
    state.withLock { _ = $0.arrived.insert(path) }
  }

  func remove(_ path: RelativePath) throws { try base.remove(path) }

  func removeLeftovers(of client: ClientIdentifier) throws {
    try base.removeLeftovers(of: client)
  }

  private func requireVisible(_ path: RelativePath, _ operation: DirectoryError.Operation) throws {
    guard isVisible(path) else {
      throw DirectoryError(.notFound, operation, path: "\(location)/\(path)")
    }
  }
}
