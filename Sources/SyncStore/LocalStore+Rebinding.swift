import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Makes the store the beginning of another generation of its document, or
  /// of another document, as another client.
  ///
  /// In one transaction: what was edited is sealed, so that it has its
  /// stamps; then the change sets made and received so far are forgotten,
  /// since they belong to the old generation. Rows, stamps, parked rows, the
  /// conflict journal and the policies stay. Until a whole store of it is
  /// uploaded nobody else has what was not published.
  ///
  /// - Parameters:
  ///   - binding: What the store is bound to from now on. Its client must be
  ///     new.
  ///   - records: The values of ``record(_:)`` that are forgotten.
  ///   - keepsNumbers: Whether what was applied goes on counting as applied,
  ///     so that whoever comes over from the old generation knows what of its
  ///     own is here. Otherwise all begin with nothing.
  public func beginAnew(
    as binding: StoreBinding, forgetting records: [String], keepsNumbers: Bool = false
  ) throws {
    let (configuration, former) = (configuration, self.binding.client)
    let place = try options.places?.place(of: path)
    let token: String? = try write { session in
      let database = session.database
      _ = try seal(session, checkCancellation: {})
      for table in ["outbox", "inbox", "history", "base", "command"] {
        try database.execute(sql: "DELETE FROM docsync_\(table)")
      }
      if !keepsNumbers {
        try database.execute(sql: "DELETE FROM docsync_range")
        try database.execute(sql: "UPDATE docsync_client SET number = 0, hash = NULL")
      }
      // Commands that were not sent are sent by the new client.
      try Self.unsealCommands(database)
      for key in records {
        try database.execute(sql: "DELETE FROM docsync_record WHERE key = ?", arguments: [key])
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
}
