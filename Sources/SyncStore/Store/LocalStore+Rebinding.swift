import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Makes the store the beginning of another generation of its document, or of another document,
  /// as another client.
  ///
  /// In one transaction, it seals the edits, so that they have their stamps, and forgets the change
  /// sets made and received so far, since they belong to the old generation. Rows, stamps, parked
  /// rows, the conflict journal and the policies stay. Until a whole store of the new generation is
  /// uploaded, no other device has the changes that were not published.
  ///
  /// - Parameters:
  ///   - binding: The store's binding from now on. Its client must be new.
  ///   - records: The keys of the records to remove (``record(_:)``).
  ///   - keepsNumbers: Whether the applied change sets still count as applied, so that a device
  ///     that comes over from the old generation knows which of its change sets are here. Otherwise
  ///     all clients begin with none.
  ///   - keepsCommand: Returns whether the new client sends an unsent command with this content.
  package func beginAgain(
    as binding: StoreBinding, forgetting records: [String], keepsNumbers: Bool = false,
    keepsCommand: (_ content: [UInt8]) throws -> Bool = { _ in false }
  ) throws {
    let (configuration, former) = (configuration, self.binding.client)
    let place = try options.places?.place(of: path)
    let token: String? = try write { session in
      let database = session.database
      try seal(session, checkCancellation: {})
      let session = try identifyByKeys(session)
      try Bookkeeping.clear([.changeSets, .generation], database)
      if !keepsNumbers {
        try session.ranges.removeAll()
        try session.clients.takeBackAll()
      }
      try session.commands.keepUnpublished(where: keepsCommand)
      for key in records {
        try session.records.write(key, to: nil)
      }
      try Self.setMeta(binding, configuration, database)
      _ = try session.clients.number(of: binding.client)
      guard let place else { return nil }
      return try Self.settle(place, of: binding.client, former: nil, options, database)
    }
    adopt(binding)
    try Self.keep(token, of: binding.client, options)
    _ = try options.places?.keep([], of: former.description)
  }

  /// Identifies the rows of tables whose key is a reference by the rows to which they refer, if an
  /// earlier version gave them identities of their own. The rows of this store count as the right
  /// ones.
  private func identifyByKeys(_ session: StoreSession) throws -> StoreSession {
    let tables = session.schema.tables.filter { $0.misidentifiedParent != nil }
    guard !tables.isEmpty else { return session }
    for table in tables {
      try TableRegistry.forget(table.id, session.database)
      try LostNames.forget(table.wireName, session.database)
    }
    return try renewedSession(session.database)
  }

  /// Throws if the store has tables whose rows other devices may show beside rows to which they do
  /// not belong: see ``beginAgain(as:forgetting:keepsNumbers:keepsCommand:)``.
  package func checkIdentities() throws {
    let found = try read { session in
      session.schema.tables.compactMap { table in table.misidentifiedParent.map { (table.name, $0) }
      }
    }
    guard let (table, parent) = found.first else { return }
    throw StoreError(
      .unsupportedSchema, path: path,
      message:
        "The key of the table \(quoted(table)) refers to \(quoted(parent)), but the "
        + "document was made by a version that gave its rows numbers of their own: on other devices they "
        + "may belong to other rows of \(quoted(parent)).",
      remedy: "Choose the device whose rows of \(quoted(table)) are right, and begin the document "
        + "again there with \(.reset).")
  }
}
