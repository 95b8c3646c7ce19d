import SyncModel

/// Commands: this client's commands until no device needs them any more, the queue of commands for
/// the application, and the result of all clients' commands.
///
/// The result is a value of the layer above, the *command state*. Snapshots contain it; the
/// commands and the queue stay in this store.
extension LocalStore {
  // MARK: Own commands

  /// Stores a command that is to be sent, durably.
  package func enqueueCommand(_ content: [UInt8]) throws {
    try write { try $0.commands.add(content) }
  }

  /// Returns the commands of this client that have not been removed yet, in order.
  package func queuedCommands() throws -> [QueuedCommand] {
    try read { try $0.commands.all() }
  }

  /// Gives a command its number and its file, and stores the resulting command state, in one
  /// transaction.
  package func sealCommand(
    _ sequence: Int64, as entry: VersionVector.Entry, bytes: [UInt8], state: [UInt8]
  ) throws {
    try write { session in
      try session.commands.seal(sequence, as: entry, bytes: bytes)
      try MetaTable.write(.commandState, to: state, session.database)
    }
  }

  /// Returns the bytes of a sealed command, exactly as they are published.
  package func commandBytes(_ number: UInt64) throws -> [UInt8] {
    guard let bytes = try read({ try $0.commands.bytes(number) }) else {
      throw StoreError(
        .missing, path: path, message: "The store no longer keeps its command \(number).",
        remedy: "It was removed after all members had processed it.")
    }
    return bytes
  }

  /// Records that a sealed command is in the shared directory, and stores the resulting command
  /// state, in one transaction.
  package func markCommandPublished(_ number: UInt64, state: [UInt8]) throws {
    try write { session in
      try MetaTable.write(.commandState, to: state, session.database)
      try session.commands.markPublished(number)
    }
  }

  /// Removes the published commands up to a number.
  package func forgetCommands(through number: UInt64) throws {
    try write { try $0.commands.removePublished(through: number) }
  }

  // MARK: Processing

  /// Returns the result of all commands that were processed; `nil` before the first.
  package func commandState() throws -> [UInt8]? {
    try read { try MetaTable.read(.commandState, $0.database) }
  }

  /// Stores the new command state and queues events for the application, in one transaction. Skips
  /// events whose command was queued before.
  ///
  /// - Parameter limits: The number of the last wanted change set of each client. Waiting change
  ///   sets with greater numbers are removed.
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

  /// Returns the commands that the application has not acknowledged, in order.
  package func pendingEvents() throws -> [CommandEvent] {
    try read { try $0.events.all() }
  }

  /// Removes a command from the queue, durably. Idempotent.
  package func acknowledgeEvent(of client: ClientIdentifier, number: UInt64) throws {
    try write { try $0.events.remove(number, of: client) }
  }
}
