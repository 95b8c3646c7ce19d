import SyncModel

/// Commands: this client's commands until no device needs them any more, the queue of commands for
/// the application, and the result of all clients' commands.
///
/// The result is a value of the layer above, the *command state*. Snapshots contain it; the others
/// stay here.
extension LocalStore {
  // MARK: Own commands

  /// Stores a command to be sent, durably.
  package func enqueueCommand(_ content: [UInt8]) throws {
    try write { try $0.commands.add(content) }
  }

  /// The commands of this client that are not cleared away, in order.
  package func queuedCommands() throws -> [QueuedCommand] {
    try read { try $0.commands.all() }
  }

  /// Gives a command its number and its file, with the command state that
  /// results, in one transaction.
  package func sealCommand(
    _ sequence: Int64, as entry: VersionVector.Entry, bytes: [UInt8], state: [UInt8]
  ) throws {
    try write { session in
      try session.commands.seal(sequence, as: entry, bytes: bytes)
      try MetaTable.write(.commandState, to: state, session.database)
    }
  }

  /// The bytes of a sealed command, exactly as they are published.
  package func commandBytes(_ number: UInt64) throws -> [UInt8] {
    guard let bytes = try read({ try $0.commands.bytes(number) }) else {
      throw StoreError(
        .missing, path: path, message: "The store no longer keeps its command \(number).",
        remedy: "It was removed after all members had processed it.")
    }
    return bytes
  }

  /// Records that a sealed command is in the shared directory, with the
  /// command state that results, in one transaction.
  package func markCommandPublished(_ number: UInt64, state: [UInt8]) throws {
    try write { session in
      try MetaTable.write(.commandState, to: state, session.database)
      try session.commands.markPublished(number)
    }
  }

  /// Forgets the published commands up to a number.
  package func forgetCommands(through number: UInt64) throws {
    try write { try $0.commands.removePublished(through: number) }
  }

  // MARK: Processing

  /// The result of all commands that were processed; `nil` before the first.
  package func commandState() throws -> [UInt8]? {
    try read { try MetaTable.read(.commandState, $0.database) }
  }

  /// Stores the new command state and queues events for the application, in one transaction. Skips
  /// events whose command was queued before.
  ///
  /// - Parameter limits: The last wanted change set of each client: those with a greater number
  ///   that wait in the store are removed.
  package func process(
    state: [UInt8], events: [CommandEvent] = [], limits: [ClientIdentifier: UInt64] = [:]
  ) throws {
    try write { session in
      try MetaTable.write(.commandState, to: state, session.database)
      try session.events.add(events)
      for (client, number) in limits { try session.inbox.remove(of: client, after: number) }
    }
  }

  // MARK: The application's queue

  /// The commands that the application has not acknowledged, in order.
  package func pendingEvents() throws -> [CommandEvent] {
    try read { try $0.events.all() }
  }

  /// Removes a command from the queue, durably. Idempotent.
  package func acknowledgeEvent(of client: ClientIdentifier, number: UInt64) throws {
    try write { try $0.events.remove(number, of: client) }
  }
}
