import Foundation
import GRDB
import SyncModel

/// The exchange of a store's content for that of a whole store (``Replacing``). A copy of the former
/// file remains beside it.
struct ContentExchange {
  let store: OpenStore
  let snapshot: CheckedSnapshot
  let records: [String: [UInt8]?]
  let commandState: (_ own: [UInt8]?, _ whole: [UInt8]?) throws -> [UInt8]?
  let checkCancellation: () throws -> Void
  let onProgress: WorkProgress

  /// How often a program may write while a copy is made.
  private static let attempts = 5

  private struct EditedMeanwhile: Error {}

  /// Exchanges the content for that of a whole store of the same document.
  ///
  /// - Parameters:
  ///   - binding: The store's binding from then on, if the whole store is of another generation.
  ///   - ownBytes: The files of own change sets whose bytes the store no longer has.
  ///   - events: The commands for the application that it has not received.
  func run(
    as binding: StoreBinding?, _ ownBytes: [UInt64: [UInt8]], _ events: [CommandEvent]
  ) throws -> ContentReplacement {
    try checkCancellation()
    let replacing = replacing(
      binding ?? store.binding, binding == nil ? .appliedAgain : .setAside, ownBytes, events)
    return try withBackup { backup in
      try attaching { try store.passingOverTriggers { try exchange(replacing, backup) } }
    }
  }

  /// Exchanges the content for that of a whole store of an unrelated document, and merges the rows
  /// of the copy into it.
  func merge(into binding: StoreBinding) throws -> ContentReplacement {
    for _ in 0..<Self.attempts {
      // Edited rows need their identities before they are copied.
      try store.sealUnreported(checkCancellation: checkCancellation)
      try store.read { _ in }
      try checkCancellation()
      let version = try store.connection.use { try DatabaseVersion($0) }
      do {
        return try withBackup { backup in
          try DatabaseQueue.reading(backup, busyTimeout: store.options.busyTimeout) { copy in
            try checkCancellation()
            let schema = try RecordedSchema.read(
              from: copy, configuration: store.configuration, path: backup)
            let former = try StoreSession(
              database: copy, schema: schema, client: store.binding.client, now: 0)
            let rows = try FormerDatabase(copy, session: former)
            let replacing = replacing(binding, .merged(rows, path: store.path))
            return try attaching { try exchange(replacing, backup, ifStill: version) }
          }
        }
      } catch is EditedMeanwhile {
        continue
      }
    }
    throw StoreError(
      .busy, path: store.path, message: "Other programs keep writing to the database.",
      remedy: "Close the programs that use it, then try again.")
  }

  private func replacing(
    _ binding: StoreBinding, _ own: Replacing.Own, _ ownBytes: [UInt64: [UInt8]] = [:],
    _ events: [CommandEvent] = []
  ) -> Replacing {
    Replacing(
      store: store, snapshot: snapshot, commandState: commandState, binding: binding, own: own,
      ownBytes: ownBytes, records: records, events: events, work: WorkCount(onProgress),
      checkCancellation: checkCancellation)
  }

  /// Exchanges the content in one transaction. If this fails, the store is the client that it was.
  ///
  /// - Parameter version: Throws `EditedMeanwhile` if the database has another version by then.
  private func exchange(
    _ replacing: Replacing, _ backup: String, ifStill version: DatabaseVersion? = nil
  ) throws -> ContentReplacement {
    let before = (store.binding, store.configuration)
    do {
      var result = ContentReplacement(backup: backup)
      try store.write { session in
        if let version, try DatabaseVersion(session.database) != version {
          throw EditedMeanwhile()
        }
        try replacing.run(session, &result)
      }
      return result
    } catch {
      let new = store.binding.client
      store.setIdentity(before.0, before.1)
      // No store will ever be the client as which the rows were to be merged.
      if case .merged = replacing.own, new != before.0.client {
        try store.options.forgetTokens(of: new)
      }
      throw error
    }
  }

  private func attaching<Result>(_ body: () throws -> Result) throws -> Result {
    try store.connection.attaching(snapshot.path, as: KeyMapping.attached, body)
  }

  /// Runs `body` with the path of a copy of the file beside it. Removes the copy if `body` throws.
  private func withBackup<Result>(_ body: (String) throws -> Result) throws -> Result {
    let backup = try StoreBackup.make(
      of: store.connection, at: store.options.now(), checkCancellation)
    do {
      return try body(backup)
    } catch {
      try FileManager.default.removeItem(atPath: backup)
      throw error
    }
  }
}
