import SyncDirectory
import SyncModel
import SyncStore

/// Commands that the other members vacuumed while they did not wait for this
/// client.
extension CommandFetch {
  /// The commands that a whole store has processed and this store has not.
  struct Missed {
    /// The commands for the application whose files still exist, in order.
    var events: [CommandEvent] = []
    /// The warnings about commands whose files are gone.
    var warnings: [SyncWarning] = []
  }

  /// Looks for commands that this store will not process one by one.
  ///
  /// Each command contains the hash of the one before it. So the search begins
  /// at the last one that the whole store has processed, and finds exactly
  /// those that it has processed.
  ///
  /// - Parameters:
  ///   - commands: The commands that the whole store has processed.
  ///   - kept: The least number of a client's commands that was not vacuumed.
  func missed(
    until commands: VersionVector, kept: [ClientIdentifier: UInt64]
  ) throws -> Missed {
    let state = try CommandSteps(session: session).state()
    var missed = Missed()
    for (client, last) in commands.entries.sorted(by: { $0.key < $1.key })
    where client != store.binding.client {
      let next = state.processed.number(of: client) + 1
      guard last.number >= next, kept[client] ?? 1 > next else { continue }
      let (events, lowest) = try left(of: client, from: last, downTo: next)
      missed.events += events
      guard lowest > next else { continue }
      var warning = SyncWarning(
        .commandsMissed,
        message: "this device missed a command, which was removed before it returned")
      warning.client = client
      warning.count = Int(clamping: lowest - next)
      missed.warnings.append(warning)
    }
    return missed
  }

  /// Returns the remaining commands for the application, and the least number
  /// of a command whose file still exists.
  private func left(
    of client: ClientIdentifier, from last: VersionVector.Entry, downTo first: UInt64
  ) throws -> (events: [CommandEvent], lowest: UInt64) {
    let names = try files.listIfPresent(layout.syncCommands(of: client), as: CommandName.self)
    var events: [CommandEvent] = []
    var number = last.number
    var hash: ContentHash? = last.hash
    while number >= first, let wanted = hash,
      let name = names.first(where: { $0.number == number && $0.hash.matches(wanted) })
    {
      let result = try NumberedFileReader(files: files).read(
        layout.path(of: name, by: client), name.hash, limit: CodecLimits.small.fileBytes
      ) { bytes, hash in
        guard hash == wanted else { throw NumberedFileReader.Problem.misplaced }
        return try Envelope.decodeJSON(SyncCommandFile.self, from: bytes, type: .syncCommand)
      }
      switch result {
      case .success(let file):
        if let application = file.command.application {
          events.append(
            CommandEvent(
              client: client, number: number, name: application.name,
              payload: Array(application.payload)))
        }
        hash = file.previous
        number -= 1
      case .failure(let problem):
        context.environment.logger.notice(
          "command \(number) of \(client): \(problem.message)")
        hash = nil
      }
    }
    return (events.reversed(), number + 1)
  }
}
