import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Sends this client's commands, and records the result of all commands.
///
/// Commands are numbered and chained like change sets. Their result in the
/// store is a ``CommandState``.
struct CommandSteps: StoreSteps {
  let session: SyncSession

  /// The result of all processed commands.
  func state() throws -> CommandState {
    try session.held.value(Self.heldState, of: binding) {
      try CommandState.read(from: store)
    }
  }

  /// Records the state after commands were processed.
  ///
  /// - Parameters:
  ///   - events: The commands for the application among them.
  ///   - limits: The last wanted change set of each client.
  func keep(
    _ state: CommandState, events: [CommandEvent] = [], limits: [ClientIdentifier: UInt64] = [:]
  ) throws {
    try store.process(state: try state.encoded(), events: events, limits: limits)
    hold(state)
  }

  private static let heldState = "commandState"

  private func hold(_ state: CommandState) {
    session.held.hold(state, Self.heldState, of: binding)
  }

  // MARK: Sending

  /// Enqueues a command, for the next synchronization to send.
  static func enqueue(_ command: SyncCommand, in store: LocalStore) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try store.enqueueCommand(Array(encoder.encode(command)))
  }

  /// Whether a command that was not sent in one generation is sent in the
  /// generation that replaces it.
  ///
  /// Commands for the application are. The others are about clients, change
  /// sets and the generation that has ended.
  static func isForEveryGeneration(_ content: [UInt8]) throws -> Bool {
    try stored(content).application != nil
  }

  /// A command that waits to be sent.
  private static func stored(_ content: [UInt8], path: String = "") throws -> SyncCommand {
    try StoredJSON.read(from: content, of: "docsync_command", key: "content", path: path)
  }

  /// Enqueues the command by which a store's client leaves, unless it is
  /// already in the queue.
  static func enqueueFarewell(of store: LocalStore) throws {
    let client = store.binding.client
    let isQueued = try store.queuedCommands().contains { command in
      let said = try stored(command.content, path: store.path).retire
      return command.sealed == nil && said?.client == client
    }
    guard !isQueued else { return }
    let revision = try StoreRecords(store).ownMarker()?.content.revision ?? 0
    try enqueue(
      SyncCommand(
        SyncCommand.Retire(client: client, reason: .left, lastRevision: revision)), in: store)
  }

  /// Numbers and publishes the commands in the queue. Returns those that were
  /// published before.
  ///
  /// If it is interrupted after it published a file and before it recorded
  /// that, the next run publishes the same bytes under the same name.
  func publish() throws -> [VersionVector.Entry] {
    let queued = try store.queuedCommands()
    for command in queued where !command.isPublished {
      try context.checkCancellation()
      let entry = try command.sealed ?? seal(command)
      _ = try publish(entry)
      var state = try self.state()
      state.own.published = entry
      try store.markCommandPublished(entry.number, state: try state.encoded())
      hold(state)
      session.report.sentCommands += 1
    }
    return queued.compactMap { $0.isPublished ? $0.sealed : nil }
  }

  /// Publishes commands again that are missing in `listed`, a listing of the
  /// intact ones in the own folder.
  func putBack(_ published: [VersionVector.Entry], listed: [CommandName]) throws {
    for entry in published where !listed.contains(name(entry)) {
      try context.checkCancellation()
      session.report.restoredFiles.append(try publish(entry).description)
    }
  }

  private func publish(_ entry: VersionVector.Entry) throws -> RelativePath {
    let path = layout.path(of: name(entry), by: client)
    try files.publishReplacingDamaged(try store.commandBytes(entry.number), at: path, by: client)
    return path
  }

  /// Lists the own commands in the directory.
  func listOwn() throws -> [CommandName] {
    try files.listIfPresent(layout.syncCommands(of: client), as: CommandName.self)
  }

  /// Removes the names from a listing whose files have another length than the
  /// published one. Only the last files are measured.
  ///
  /// - Parameter published: The published commands that the store still
  ///   contains.
  func leavingOutShort(
    _ names: [CommandName], of published: [VersionVector.Entry]
  ) throws -> [CommandName] {
    let names = names.sorted()
    let published = Set(published.map(name))
    return try names.enumerated().filter { index, name in
      guard names.count - index <= SyncTurns.inTurn, published.contains(name) else { return true }
      let length = try files.measure(layout.path(of: name, by: client))
      return length == (try store.commandBytes(name.number).count)
    }.map(\.element)
  }

  private func name(_ entry: VersionVector.Entry) -> CommandName {
    CommandName(number: entry.number, hash: HashFragment(entry.hash))
  }

  private func seal(_ command: QueuedCommand) throws -> VersionVector.Entry {
    var state = try state()
    let last = state.own.sealed
    var content = try Self.stored(command.content, path: store.path)
    if content.retire?.client == binding.client {
      // By now, this client has published everything that it has sealed.
      content.retire?.changeHead = try store.head()?.number ?? 0
    }
    let file = SyncCommandFile(
      root: binding.root, document: binding.document, generation: binding.generation,
      client: binding.client, number: (last?.number ?? 0) + 1, previous: last?.hash,
      stamp: state.nextStamp(milliseconds: context.environment.now()),
      command: content)
    let bytes = try Envelope.encodeJSON(file, type: .syncCommand)
    let entry = VersionVector.Entry(number: file.number, hash: ContentHash(of: bytes))
    state.process(file, hash: entry.hash)
    try store.sealCommand(command.sequence, as: entry, bytes: bytes, state: try state.encoded())
    hold(state)
    return entry
  }

  // MARK: Processing

  /// Returns the last known command of each client, from its own marker or from
  /// that of a client that has processed it.
  func heads(
    _ seen: [ClientIdentifier: StoreRecords.SeenMarker]
  ) throws -> [ClientIdentifier: UInt64] {
    var heads = seen.mapValues(\.commandHead)
    for marker in try records.readMarkers().values {
      for (client, entry) in marker.commandsApplied.entries {
        heads[client] = max(heads[client] ?? 0, entry.number)
      }
    }
    return heads
  }
}
