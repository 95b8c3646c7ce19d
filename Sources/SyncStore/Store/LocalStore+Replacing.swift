import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Exchanges the store's content for that of a whole store, in one transaction: programs that
  /// have the file open see nothing in between.
  ///
  /// Edits in the log are sealed first. The synchronized tables, and all that bookkeeping knows of
  /// the document, become those of the whole store, with its schema if that is another. The
  /// device's own data stays: excluded tables and columns, policies, the conflict journal, records,
  /// and its own change sets. Rows that the store had keep the keys that they have here. Own change
  /// sets that the whole store does not contain are applied again, as they were sealed; if they
  /// depend on change sets of other clients that are missing, they wait for these.
  ///
  /// A copy of the former file remains beside it.
  ///
  /// - Parameters:
  ///   - path: A whole store as ``adopt(snapshotAt:binding:options:checkCancellation:)`` takes it.
  ///     It is checked first, and not changed.
  ///   - binding: The store's binding from then on, if the whole store is of another generation.
  ///     The own change sets are not applied again then: the result has those that the whole store
  ///     does not contain, and the store has them until ``rewriteReturning(checkCancellation:)``.
  ///   - ownBytes: The files of own change sets whose bytes the store no longer has, by their
  ///     numbers.
  ///   - records: Values of ``setRecord(_:to:)`` to set in the same transaction; `nil` removes one.
  ///   - commandState: Combines the command states of this store and of the whole store
  ///     (``commandState()``).
  ///   - events: The commands in these states that are for the application, and that it has not
  ///     received.
  ///   - checkCancellation: Called between steps. If it throws, nothing is changed and the error is
  ///     passed on.
  ///   - onProgress: Called with the number of steps that are done: each table takes a few, and
  ///     each own change set that is applied again takes one.
  ///
  /// Throws `damaged` if the file is not a sound whole store, `fork` if it has own change sets that
  /// this store does not know, and `changeSetMissing` if the bytes of one that has to be applied
  /// again cannot be found.
  package func replaceContent(
    withSnapshotAt path: String, binding: StoreBinding? = nil,
    ownBytes: [UInt64: [UInt8]] = [:], records: [String: [UInt8]?] = [:],
    commandState: @escaping (_ own: [UInt8]?, _ whole: [UInt8]?) throws -> [UInt8]? = { $0 ?? $1 },
    events: [CommandEvent] = [],
    checkCancellation: @escaping () throws -> Void = {},
    onProgress: @escaping WorkProgress = { _, _ in }
  ) throws -> ContentReplacement {
    let snapshot = try CheckedSnapshot(
      path: path, busyTimeout: options.busyTimeout, checkCancellation: checkCancellation)
    try checkCancellation()
    let before = (self.binding, configuration)
    let backup = try copyAside(checkCancellation)
    do {
      try attach(snapshot)
      let replacing = Replacing(
        store: self, snapshot: snapshot, commandState: commandState,
        binding: binding ?? self.binding, own: binding == nil ? .appliedAgain : .setAside,
        ownBytes: ownBytes, records: records, events: events,
        work: WorkCount(onProgress), checkCancellation: checkCancellation)
      do {
        var result = ContentReplacement(backup: backup)
        try passingOverTriggers {
          result = ContentReplacement(backup: backup)
          setIdentity(before.0, before.1)
          try write { try replacing.run($0, &result) }
        }
        try detach()
        return result
      } catch {
        setIdentity(before.0, before.1)
        try detach()
        throw error
      }
    } catch {
      try FileManager.default.removeItem(atPath: backup)
      throw error
    }
  }

  /// Returns the own change sets of a generation that the store has left, in order. They are to be
  /// rewritten.
  package func returning() throws -> [ContentReplacement.OwnChangeSet] {
    try read { try $0.returning() }
  }

  /// Stores files of change sets of another store of the document. They are to be rewritten after
  /// those that are stored already.
  package func keepReturning(_ changeSets: [[UInt8]]) throws {
    try write { session in try session.keepReturning(changeSets) }
  }

  /// Seals the edits, and returns the files of the change sets that were sealed here and are not
  /// published, in the order in which they can be rewritten: those that the store has brought along
  /// itself (``returning()``), those of former clients, and its own.
  package func unsentChangeSets(
    checkCancellation: @escaping () throws -> Void = {}
  ) throws -> [[UInt8]] {
    try sealUnreported(checkCancellation: checkCancellation)
    let sealed = try ancestralChangeSets() + sealedChangeSets().filter { !$0.isPublished }
    return try returning().map(\.bytes)
      + sealed.map { set in
        let bytes = try sealedBytes(set.number, of: set.client)
        guard ContentHash(of: bytes) == set.hash else {
          throw StoreError(
            .damaged, path: path, message: "Change set \(set.number) of the store is damaged.",
            remedy: "Restore the file from a backup, or join the document again.")
        }
        return bytes
      }
  }

  // MARK: - Files

  func attach(_ snapshot: CheckedSnapshot) throws {
    try StoreError.mapping(path) {
      try connection.queue.writeWithoutTransaction { database in
        try database.execute(
          sql: "ATTACH DATABASE ? AS \(KeyMapping.attached)", arguments: [snapshot.path])
      }
    }
  }

  func detach() throws {
    try StoreError.mapping(path) {
      try connection.queue.writeWithoutTransaction { database in
        try database.execute(sql: "DETACH DATABASE \(KeyMapping.attached)")
      }
    }
  }

  /// Copies the file to `<store>.before-<date>`, readable only by those who may read the store.
  /// Returns the path of the copy.
  func copyAside(_ checkCancellation: @escaping () throws -> Void) throws -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "UTC")
    formatter.dateFormat = "yyyyMMdd-HHmmss"
    let date = Date(timeIntervalSince1970: Double(options.now()) / 1000)
    let base = "\(path).before-\(formatter.string(from: date))"
    var copy = base
    var number = 2
    while FileManager.default.fileExists(atPath: copy) {
      copy = "\(base)-\(number)"
      number += 1
    }
    func removeCopy() throws {
      guard FileManager.default.fileExists(atPath: copy) else { return }
      try FileManager.default.removeItem(atPath: copy)
    }
    // SQLite writes into a file only if it is empty or does not exist.
    try StoreFileMode.makeFile(at: copy, like: path)
    do {
      try StoreError.mapping(path) {
        try connection.queue.writeWithoutTransaction { database in
          try QueryCancellation.run(database, checkCancellation) {
            try database.execute(sql: "VACUUM main INTO ?", arguments: [copy])
          }
        }
      }
      return copy
    } catch {
      try removeCopy()
      throw error
    }
  }
}
