import SyncDirectory
import SyncModel

/// One device's view of the shared directory. The simulation makes the change sets and markers of
/// other devices visible, in any order, and may hide them again.
final class DelayedDirectory: SharedDirectory {
  private struct State {
    var isOpen = true
    var seen: Set<FleetFile> = []
  }

  private let base: MemoryDirectory
  private let ledger: FleetLedger
  private let device: Int
  private let state = Locked(State())
  private let kill: FleetKill

  /// - Parameter kill: What ends the device's process during one of the calls.
  init(_ base: MemoryDirectory, ledger: FleetLedger, device: Int, kill: FleetKill) {
    self.kill = kill
    self.base = base
    self.ledger = ledger
    self.device = device
  }

  /// Whether all files are visible, as at first.
  var isOpen: Bool {
    get { state.withLock { $0.isOpen } }
    set { state.withLock { $0.isOpen = newValue } }
  }

  /// The visible files of other devices.
  var seen: Set<FleetFile> { state.withLock { $0.seen } }

  /// Makes a file visible. Returns false if it already is or is not published.
  func show(_ file: FleetFile) -> Bool {
    guard file.author != device, ledger.path(of: file) != nil else { return false }
    return state.withLock { $0.seen.insert(file).inserted }
  }

  /// Hides a file until ``show(_:)``.
  func hide(_ file: FleetFile) { state.withLock { _ = $0.seen.remove(file) } }

  private func isVisible(_ path: RelativePath) -> Bool {
    guard let file = ledger.file(at: path), file.author != device else { return true }
    return state.withLock { $0.isOpen || $0.seen.contains(file) }
  }

  var location: String { base.location }

  /// Returns a published change set of this device.
  func published(_ number: UInt64) -> SyncChangeSet? { ledger.changeSet(number, of: device) }

  /// Returns the rows that other devices change in change sets beyond a vector, with the actions.
  func saidByOthers(
    since vector: [ClientIdentifier: UInt64], schema: FleetSchema
  ) -> [OracleKey: Set<RowAction>] {
    var said: [OracleKey: Set<RowAction>] = [:]
    for set in ledger.changeSets where set.header.number > vector[set.header.client] ?? 0 {
      guard ledger.device(of: set.header.client) != device else { continue }
      for changes in set.tables {
        let collations = schema.table(changes.table)?.keyCollations ?? []
        for row in changes.actions.indices {
          guard let action = RowAction(rawValue: changes.actions[row]) else { continue }
          said[changes.oracleKey(row, collations: collations), default: []].insert(action)
        }
      }
    }
    return said
  }

  func check(for access: DirectoryAccess) throws {
    try kill.require()
    try base.check(for: access)
  }

  func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    try kill.require()
    return try base.list(folder).filter { entry in
      folder.appending(entry.name).map(isVisible) ?? true
    }
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
    try kill.require()
    ledger.register(client, as: device)
    try base.publish(content, at: path, by: client)
    try ledger.note(content, at: path)
    try kill.require()
  }

  func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    try kill.require()
    ledger.register(client, as: device)
    try base.upload(localFile: localFile, to: path, by: client, progress: progress)
    try ledger.note(try base.read(path, limit: .max), at: path)
    try kill.require()
  }

  func remove(_ path: RelativePath) throws {
    try kill.require()
    try base.remove(path)
    ledger.noteRemoval(of: path)
    try kill.require()
  }

  func removeLeftovers(of client: ClientIdentifier) throws {
    try kill.require()
    try base.removeLeftovers(of: client)
  }

  private func requireVisible(_ path: RelativePath, _ operation: DirectoryError.Operation) throws {
    try kill.require()
    guard isVisible(path) else {
      throw DirectoryError(.notFound, operation, path: "\(location)/\(path)")
    }
  }
}
