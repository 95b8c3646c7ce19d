import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Sending this client's commands, and processing the others'.
///
/// Commands are numbered and chained like change sets. The store holds their
/// result, a ``CommandState``.
struct CommandSteps: StoreSteps {
  /// About how many bytes of payloads are kept in memory.
  private static let windowBytes = 8 << 20

  let files: SharedFiles
  let store: LocalStore

  /// The result of all commands that were processed.
  func state() throws -> CommandState {
    try CommandState.decoded(
      store.commandState(), generation: binding.generation, client: binding.client)
  }

  // MARK: Sending

  /// Keeps a command to be sent with the next synchronization.
  static func enqueue(_ command: SyncCommand, in store: LocalStore) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try store.enqueueCommand(Array(encoder.encode(command)))
  }

  /// Enqueues the command by which a store's client leaves, unless it is
  /// waiting to be sent already.
  static func enqueueFarewell(of store: LocalStore) throws {
    let client = store.binding.client
    let isQueued = try store.queuedCommands().contains { command in
      let said = try JSONDecoder().decode(SyncCommand.self, from: Data(command.content)).retire
      return command.sealed == nil && said?.client == client
    }
    guard !isQueued else { return }
    let revision = try StoreRecords(store).ownMarker()?.content.revision ?? 0
    try enqueue(
      SyncCommand(
        SyncCommand.Retire(client: client, reason: .left, lastRevision: revision)), in: store)
  }

  /// Numbers and publishes the commands that wait, and puts back those that are
  /// missing in `listed`, a listing of the intact ones in the own folder.
  ///
  /// If it is interrupted after it published a file and before it recorded
  /// that, the next run publishes the same bytes under the same name.
  func publish(listed: [CommandName]? = nil, _ report: inout SyncReport) throws {
    for command in try store.queuedCommands() {
      try context.checkCancellation()
      let isThere =
        listed.map { names in
          command.sealed.map { names.contains(name($0)) } ?? false
        } ?? true
      guard !command.isPublished || !isThere else { continue }
      let entry = try command.sealed ?? seal(command)
      let bytes = try store.commandBytes(entry.number)
      let path = layout.path(of: name(entry), by: binding.client)
      try files.publishReplacingDamaged(bytes, at: path, by: binding.client)
      guard !command.isPublished else {
        report.restoredFiles.append(path.description)
        continue
      }
      var state = try self.state()
      state.own.published = entry
      try store.markCommandPublished(entry.number, state: try state.encoded())
      report.sentCommands += 1
    }
  }

  /// The own commands that are there.
  func listOwn() throws -> [CommandName] {
    try files.listIfPresent(layout.syncCommands(of: client), as: CommandName.self)
  }

  /// The names of a listing, without files whose length differs from the
  /// published one. Only the last files are measured.
  func leavingOutShort(_ names: [CommandName]) throws -> [CommandName] {
    let names = names.sorted()
    let published = Set(
      try store.queuedCommands().compactMap { $0.isPublished ? $0.sealed.map(name) : nil })
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
    var content = try JSONDecoder().decode(SyncCommand.self, from: Data(command.content))
    if content.retire?.client == binding.client {
      // Everything that this client has sealed is published by now.
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
    return entry
  }

  // MARK: Processing

  /// Processes the commands that others have announced and this store has not
  /// processed. Returns the state after them.
  ///
  /// A file that is missing or does not check out holds up its author's later
  /// commands, and nothing else; the report names it. If one was vacuumed, the
  /// store needs a whole store (`clearedAway`).
  func fetch(
    _ seen: [ClientIdentifier: StoreRecords.SeenMarker], _ lowest: LowestKept,
    _ report: inout SyncReport
  ) throws -> CommandState {
    var state = try state()
    let new = try heads(seen).filter { client, head in
      client != binding.client && head > state.processed.number(of: client)
    }
    guard !new.isEmpty else { return state }
    // The heads come from markers, which can contain any number.
    let count = new.reduce(0) { sum, head in
      let (count, overflows) = sum.addingReportingOverflow(
        Int(clamping: head.value - state.processed.number(of: head.key)))
      return overflows ? .max : count
    }
    context.begin(.downloading, count: count)
    let folders = try files.folders(in: layout.syncCommands, ofSoMany: new.count)
    for (client, head) in new.sorted(by: { $0.key < $1.key }) {
      let names =
        folders?.contains(client) ?? true
        ? try files.listIfPresent(layout.syncCommands(of: client), as: CommandName.self) : []
      try fetch(client, through: head, names, lowest, &state, &report)
    }
    context.endPhase()
    return state
  }

  /// The last known command of each client, from its own marker or from that of
  /// a client that has processed it.
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

  private func fetch(
    _ client: ClientIdentifier, through announced: UInt64, _ listed: [CommandName],
    _ lowest: LowestKept, _ state: inout CommandState, _ report: inout SyncReport
  ) throws {
    let names = Dictionary(grouping: listed, by: \.number)
    let last = max(announced, names.keys.max() ?? 0)
    var new: [CommandEvent] = []
    var bytes = 0
    var processed = 0
    func keep() throws {
      guard processed > 0 else { return }
      try store.process(state: try state.encoded(), events: new)
      for event in new { context.send(.commandReceived(event)) }
      report.processedCommands += processed
      (new, bytes, processed) = ([], 0, 0)
    }
    while state.processed.number(of: client) < last {
      let number = state.processed.number(of: client) + 1
      if names[number] == nil,
        try lowest.kept(of: client).commands > number
      {
        try keep()
        report.waiting.append(
          SyncReport.Wait(
            client: client, number: number, reason: .clearedAway,
            message: "it was cleared away, and this device has not processed it",
            path: layout.syncCommands(of: client).description, isCommand: true))
        return
      }
      switch try read(client, number, names[number, default: []], state) {
      case .success(let (file, hash)):
        context.report {
          $0.completedCount += 1
          $0.totalCount = max($0.totalCount, $0.completedCount)
        }
        state.process(file, hash: hash)
        processed += 1
        if let retire = file.command.retire {
          context.send(.retired(retire.client, reason: retire.reason))
        }
        if let application = file.command.application {
          bytes += application.payload.count
          new.append(
            CommandEvent(
              client: client, number: number, name: application.name,
              payload: Array(application.payload)))
        }
        if bytes >= Self.windowBytes { try keep() }
      case .failure(let failure):
        try keep()
        report.waiting.append(failure.wait)
        return
      }
    }
    try keep()
  }

  private struct Failure: Error {
    var wait: SyncReport.Wait
  }

  /// The one file of a number that continues what was processed.
  private func read(
    _ client: ClientIdentifier, _ number: UInt64, _ names: [CommandName], _ state: CommandState
  ) throws -> Result<(SyncCommandFile, ContentHash), Failure> {
    func failure(
      _ reason: SyncReport.Wait.Reason, _ message: String, _ path: RelativePath
    ) -> Failure {
      Failure(
        wait: SyncReport.Wait(
          client: client, number: number, reason: reason, message: message,
          path: path.description, isCommand: true))
    }
    var found: [(SyncCommandFile, ContentHash)] = []
    var problem: Failure?
    for name in names.sorted() {
      let path = layout.path(of: name, by: client)
      do {
        let bytes = try files.read(path, limit: CodecLimits.small.fileBytes)
        context.report { $0.completedBytes += bytes.count }
        let hash = ContentHash(of: bytes)
        guard name.hash.matches(hash) else {
          problem =
            problem
            ?? failure(
              .damaged, "its file is damaged or has not arrived completely", path)
          continue
        }
        let file = try Envelope.decodeJSON(
          SyncCommandFile.self, from: bytes, type: .syncCommand)
        guard file.root == binding.root, file.document == binding.document,
          file.generation == binding.generation, file.client == client, file.number == number
        else {
          problem =
            problem
            ?? failure(
              .misplaced, "its file belongs to another document, client or number", path)
          continue
        }
        guard file.previous == state.processed[client]?.hash else {
          problem =
            problem
            ?? failure(
              .brokenChain, "its file does not continue the command before it", path)
          continue
        }
        guard file.command.isWellFormed else {
          problem = problem ?? failure(.damaged, "its content contradicts itself", path)
          continue
        }
        guard !file.command.isUnknown else {
          problem =
            problem
            ?? failure(
              .newerFormat, "it is of a kind that a newer version of DocumentSync knows", path)
          continue
        }
        found.append((file, hash))
      } catch let error as CodecError {
        problem =
          problem
          ?? failure(
            error.needsNewerReader ? .newerFormat : .damaged,
            error.needsNewerReader
              ? "it was written by a newer version of DocumentSync"
              : "its file is damaged: \(error.what)", path)
      } catch let error as DirectoryError where error.concernsOneFile {
        problem =
          problem
          ?? failure(
            .unreadable, "its file could not be read: \(error.code)", path)
      }
    }
    if found.count == 1 { return .success(found[0]) }
    let folder = layout.syncCommands(of: client)
    if found.count > 1 {
      return .failure(failure(.fork, "two different files claim its number", folder))
    }
    return .failure(
      problem
        ?? failure(
          .notArrived, "announced, and its file is not in the shared directory yet", folder))
  }
}
