import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// How often a program may write while a copy is made.
  private static let copyAttempts = 5

  /// Exchanges the store's content for that of a whole store of an unrelated document, as
  /// ``replaceContent(withSnapshotAt:binding:ownBytes:records:commandState:events:checkCancellation:onProgress:)``
  /// does, and merges the rows that the store had into it, as edits that a new client makes now.
  /// They are not published yet.
  ///
  /// Rows are matched by the identities of the document, as in
  /// ``adopt(snapshotAt:mergingDatabaseAt:prefer:binding:options:checkCancellation:onProgress:)``,
  /// and by the identities that they had. Values that contradict the document, and parked rows, are
  /// entered in the conflict journal. If both documents stem from one, the later value is shown.
  /// The store forgets the change sets that it had sealed and received for its former document: the
  /// rows contain their changes. A copy of the former file remains beside it.
  ///
  /// The other parameters are those of the other function. Throws `schemasDiffer` if the tables
  /// differ in their columns, or if data that stays on this device would be shared, and `busy` if
  /// other programs write all the time. In these cases the rows are unchanged.
  ///
  /// - Parameter binding: The store's binding from then on, with the client that it has been.
  package func replaceContent(
    withSnapshotAt path: String, mergingInto binding: StoreBinding,
    records: [String: [UInt8]?] = [:],
    commandState: @escaping (_ own: [UInt8]?, _ whole: [UInt8]?) throws -> [UInt8]? = { $0 ?? $1 },
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping WorkProgress = { _, _ in }
  ) throws -> ContentReplacement {
    let snapshot = try CheckedSnapshot(
      path: path, busyTimeout: options.busyTimeout, checkCancellation: checkCancellation)
    var attempt = 1
    while true {
      // Edited rows need their identities before they are copied.
      try sealUnreported(checkCancellation: checkCancellation)
      try read { _ in }
      try checkCancellation()
      let state = try writingState()
      let backup = try copyAside(checkCancellation)
      do {
        return try DatabaseQueue.reading(backup, busyTimeout: options.busyTimeout) { copy in
          try checkCancellation()
          let schema = try RecordedSchema.read(
            from: copy, configuration: configuration, path: backup)
          let former = try StoreSession(
            database: copy, schema: schema, client: self.binding.client, now: 0)
          return try goOver(
            to: snapshot, binding, backup, FormerDatabase(copy, session: former), from: state,
            records, commandState, WorkCount(onProgress), checkCancellation)
        }
      } catch {
        try FileManager.default.removeItem(atPath: backup)
        guard error is EditedMeanwhile else { throw error }
        guard attempt < Self.copyAttempts else {
          throw StoreError(
            .busy, path: self.path,
            message: "Other programs keep writing to the database.",
            remedy: "Close the programs that use it, then try again.")
        }
        attempt += 1
      }
    }
  }

  private func goOver(
    to snapshot: CheckedSnapshot, _ binding: StoreBinding, _ backup: String,
    _ former: FormerDatabase, from state: WritingState, _ records: [String: [UInt8]?],
    _ commandState: @escaping ([UInt8]?, [UInt8]?) throws -> [UInt8]?, _ work: WorkCount,
    _ checkCancellation: @escaping () throws -> Void
  ) throws -> ContentReplacement {
    let before = (self.binding, configuration)
    let replacing = Replacing(
      store: self, snapshot: snapshot, commandState: commandState, binding: binding,
      own: .merged(former, path: path), ownBytes: [:], records: records, events: [],
      work: work, checkCancellation: checkCancellation)
    try attach(snapshot)
    do {
      var result = ContentReplacement(backup: backup)
      try write { session in
        guard try Self.writingState(session.database) == state else { throw EditedMeanwhile() }
        try replacing.run(session, &result)
      }
      try detach()
      return result
    } catch {
      let new = self.binding.client
      setIdentity(before.0, before.1)
      try detach()
      // No store will ever be that client.
      if new != before.0.client { try options.forgetTokens(of: new) }
      throw error
    }
  }

  // MARK: - Writes in between

  private struct EditedMeanwhile: Error {}

  /// A state of the database. Two are equal if no program wrote to the database in between.
  private struct WritingState: Equatable {
    /// Changes when another connection has written.
    var version: Int?
    /// The number of rows that this connection has written.
    var own: Int?
  }

  private func writingState() throws -> WritingState {
    try StoreError.mapping(path) {
      try connection.queue.writeWithoutTransaction { try Self.writingState($0) }
    }
  }

  private static func writingState(_ database: Database) throws -> WritingState {
    WritingState(
      version: try Int.fetchOne(database, sql: "PRAGMA main.data_version"),
      own: try Int.fetchOne(database, sql: "SELECT total_changes()"))
  }
}
