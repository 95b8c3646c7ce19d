import SyncDirectory
import SyncModel
import SyncStore

/// Fetches and processes the commands of other clients.
struct CommandFetch: StoreSteps {
  /// About how many bytes of payloads are in memory at once.
  private static let windowBytes = 8 << 20

  let session: SyncSession

  /// Processes the commands that others have announced and this store has not
  /// processed. Returns the state after them.
  ///
  /// A file that is missing or does not check out delays its author's later
  /// commands, and nothing else; the report names it. If a command was
  /// vacuumed, this store needs a whole store (`clearedAway`).
  func fetch(
    _ seen: [ClientIdentifier: StoreRecords.SeenMarker], _ lowest: LowestKept
  ) throws -> CommandState {
    let commands = CommandSteps(session: session)
    var state = try commands.state()
    let new = try commands.heads(seen).filter { client, head in
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
      try fetch(client, through: head, names, lowest, &state)
    }
    context.endPhase()
    return state
  }

  private func fetch(
    _ client: ClientIdentifier, through announced: UInt64, _ listed: [CommandName],
    _ lowest: LowestKept, _ state: inout CommandState
  ) throws {
    let names = Dictionary(grouping: listed, by: \.number)
    let last = max(announced, names.keys.max() ?? 0)
    var new: [CommandEvent] = []
    var retirements: [SyncCommand.Retire] = []
    var bytes = 0
    var processed = 0
    func keep() throws {
      guard processed > 0 else { return }
      try CommandSteps(session: session).keep(state, events: new)
      for retire in retirements { context.send(.retired(retire.client, reason: retire.reason)) }
      for event in new { context.send(.commandReceived(event)) }
      session.report.processedCommands += processed
      (new, retirements, bytes, processed) = ([], [], 0, 0)
    }
    while state.processed.number(of: client) < last {
      let number = state.processed.number(of: client) + 1
      if names[number] == nil,
        try lowest.kept(of: client).commands > number
      {
        try keep()
        session.report.waiting.append(
          SyncReport.Wait(
            client: client, number: number, reason: .clearedAway,
            message: "it was removed, and this device has not processed it",
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
        if let retire = file.command.retire { retirements.append(retire) }
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
        session.report.waiting.append(failure.wait)
        return
      }
    }
    try keep()
  }

  private struct Failure: Error {
    var wait: SyncReport.Wait
  }

  /// Reads the one file of a number that continues the processed commands.
  private func read(
    _ client: ClientIdentifier, _ number: UInt64, _ names: [CommandName], _ state: CommandState
  ) throws -> Result<(SyncCommandFile, ContentHash), Failure> {
    func failure(
      _ problem: NumberedFileReader.Problem, _ path: RelativePath
    ) -> Failure {
      Failure(
        wait: SyncReport.Wait(
          client: client, number: number, reason: problem.reason, message: problem.message,
          path: path.description, isCommand: true))
    }
    typealias Problem = NumberedFileReader.Problem
    var found: [(SyncCommandFile, ContentHash)] = []
    var first: Failure?
    for name in names.sorted() {
      let path = layout.path(of: name, by: client)
      let result = try NumberedFileReader(files: files).read(
        path, name.hash, limit: CodecLimits.small.fileBytes
      ) { bytes, hash in
        context.report { $0.completedBytes += bytes.count }
        let file = try Envelope.decodeJSON(
          SyncCommandFile.self, from: bytes, type: .syncCommand)
        try check(file, client, number, after: state)
        return (file, hash)
      }
      switch result {
      case .success(let command): found.append(command)
      case .failure(let problem): first = first ?? failure(problem, path)
      }
    }
    if found.count == 1 { return .success(found[0]) }
    let folder = layout.syncCommands(of: client)
    if found.count > 1 {
      return .failure(
        failure(Problem(.fork, "two different files claim its number"), folder))
    }
    return .failure(
      first
        ?? failure(
          Problem(.notArrived, "announced, and its file is not in the shared directory yet"),
          folder))
  }

  /// Throws unless a command is the next one of its author, and this version
  /// can process it.
  private func check(
    _ file: SyncCommandFile, _ client: ClientIdentifier, _ number: UInt64,
    after state: CommandState
  ) throws {
    typealias Problem = NumberedFileReader.Problem
    guard FileOrigin(file) == FileOrigin(header, of: client), file.number == number else {
      throw Problem.misplaced
    }
    guard file.previous == state.processed[client]?.hash else {
      throw Problem(.brokenChain, "its file does not continue the command before it")
    }
    guard file.command.isWellFormed else {
      throw Problem(.damaged, "its content contradicts itself")
    }
    guard !file.command.isUnknown else {
      throw Problem(
        .newerFormat, "only a newer version of DocumentSync knows its kind")
    }
  }
}
