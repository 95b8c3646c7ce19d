import DocumentSync
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// One device: its store, the program that edits it, and the directory as the
/// device sees it.
final class FleetDevice {
  let number: Int
  let store: LocalStore
  /// How it synchronizes as apps do; `nil` where change sets are sealed and
  /// applied directly.
  let manager: DocumentSyncManager?
  let directory: DelayedDirectory
  let clock: FleetClock
  /// The program that edits the store and knows nothing of us.
  let program: FleetSQLite
  /// Which keys the program changed since the last synchronization.
  let moves: MoveLog
  /// What the change sets say that were applied here, merged by the oracle.
  var state: LogicalState
  /// What was shown after the last synchronization.
  var shown: [OracleKey: [String: Value]]
  /// Whether a program had foreign keys off since the last synchronization.
  var wasEditedFreely = false
  private let schema: FleetSchema

  init(
    number: Int, store: LocalStore, manager: DocumentSyncManager?, directory: DelayedDirectory,
    clock: FleetClock, schema: FleetSchema, state: LogicalState
  ) throws {
    self.number = number
    self.store = store
    self.manager = manager
    self.directory = directory
    self.clock = clock
    self.schema = schema
    self.state = state
    program = try FleetSQLite(store.path)
    moves = try MoveLog(program, schema: schema)
    shown = try VisibleRows(program, schema: schema).read()
    try program.override("julianday") { .real(clock.julianDay) }
    try program.override("randomblob") { .blob(clock.bytes(16)) }
  }

  var client: ClientIdentifier { store.binding.client }

  func close() async throws {
    if let manager {
      try await manager.close()
    } else {
      try store.close()
    }
  }

  // MARK: - Editing

  /// Runs statements as one program does. Gives those that were accepted.
  func edit(_ edit: FleetEdit) throws -> [String] {
    clock.time = edit.time
    clock.reseed(edit.salt)
    if !edit.hasForeignKeys { wasEditedFreely = true }
    return try program.edit(edit.statements, hasForeignKeys: edit.hasForeignKeys)
  }

  // MARK: - Synchronizing

  /// Synchronizes; true if there was nothing to do.
  func synchronize(salt: UInt64) async throws -> Bool {
    clock.reseed(salt)
    guard let manager else { return try synchronizeDirectly(salt: salt) }
    lastReport = try await manager.synchronize()
    return lastReport?.isIdle ?? true
  }

  /// What the manager said last.
  private(set) var lastReport: SyncReport?

  /// Applies what is visible, in any order and some of it again, then seals
  /// and publishes.
  private func synchronizeDirectly(salt: UInt64) throws -> Bool {
    var dice = Dice(seed: salt)
    let binding = store.binding
    let generation = DirectoryLayout.Document(binding.document).generation(binding.generation)
    let applied = try store.appliedVector()
    var received: [ReceivedChangeSet] = []
    let folders = try directory.listIfPresent(generation.syncChanges, as: ClientIdentifier.self)
    for author in folders.names where author != client {
      let names = try directory.list(
        generation.syncChanges(of: author), as: ChangeSetName.self
      ).names
      for name in names {
        let isKnown = name.number <= applied.number(of: author)
        if isKnown, !dice.chance(10) { continue }
        let bytes = try directory.read(
          generation.path(of: name, by: author), limit: .max)
        received.append(
          ReceivedChangeSet(
            changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes),
            bytes: bytes))
      }
    }
    // Otherwise applying seals first, in its own transaction.
    if dice.chance(50) { try sealAndCheck() }
    received = dice.shuffled(received)
    if dice.chance(30), received.count > 1 {
      let middle = received.count / 2
      _ = try store.apply(Array(received[..<middle]))
      received.removeFirst(middle)
    }
    let report = try store.apply(received)
    _ = try store.seal()
    var published = 0
    for sealed in try store.sealedChangeSets() where !sealed.isPublished {
      let bytes = try store.sealedBytes(sealed.number)
      let name = ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash))
      try directory.publish(bytes, at: generation.path(of: name, by: client), by: client)
      try store.markPublished(sealed.number)
      published += 1
    }
    return report.applied.isEmpty && published == 0
  }

  /// Seals, and checks that nothing that was edited is missing.
  private func sealAndCheck() throws {
    var check = try EditCheck(program, schema: schema, shown: shown)
    let report = try store.seal()
    let sealed = try report.changeSets.map {
      try ChangeSetCodec.decode(try store.sealedBytes($0.number))
    }
    var missing = try check.missing(from: sealed, state: state, program, moves: moves.moves())
    if !wasEditedFreely {
      missing += check.undone(in: try VisibleRows(program, schema: schema).read())
    }
    missing += sealed.flatMap { TornRegisters(schema: schema).found(in: $0) }
    guard missing.isEmpty else {
      throw FleetFailure(
        .lost, "device \(number) has not sealed:\n  " + missing.joined(separator: "\n  "))
    }
  }
}
