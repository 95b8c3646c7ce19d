import Foundation
import GRDB
import SyncModel

/// The client that a store is, and the place and the tokens by which the store recognizes that it
/// is a copy, or an older state of itself.
struct StoreIdentity {
  let database: Database
  let path: String
  let options: StoreOptions

  /// A client that a store has become.
  typealias NewClient = (incarnation: Incarnation, binding: StoreBinding)

  static func write(
    _ binding: StoreBinding, _ configuration: StoreConfiguration, _ database: Database
  ) throws {
    try MetaTable.write(.binding, to: Array(JSONEncoder().encode(binding)), database)
    try MetaTable.write(.configuration, to: Array(JSONEncoder().encode(configuration)), database)
  }

  /// Reads the binding and the configuration. Throws `newerFormat`, and `damaged` if they cannot be
  /// read.
  static func read(
    _ database: Database, _ path: String
  ) throws -> (binding: StoreBinding, configuration: StoreConfiguration) {
    guard let format = try Bookkeeping.format(of: database) else { throw damaged(path) }
    guard format <= Bookkeeping.format else {
      throw StoreError(
        .newerFormat, path: path,
        message: "The store was put under sync by a newer version (format \(format)).",
        remedy: "Update DocumentSync on this device.")
    }
    do {
      guard let binding = try MetaTable.value(.binding, as: StoreBinding.self, database),
        let configuration = try MetaTable.value(
          .configuration, as: StoreConfiguration.self, database)
      else { throw damaged(path) }
      return (binding, configuration)
    } catch let error as StoreError {
      throw damaged(path, error.detail)
    }
  }

  private static func damaged(_ path: String, _ detail: String? = nil) -> StoreError {
    StoreError(
      .damaged, path: path,
      message:
        "The store's bookkeeping is damaged: the table “docsync_meta” holds an invalid value.",
      remedy: "Restore the file from a backup, or fetch the document again with \(.join).",
      detail: detail)
  }

  // MARK: - The client

  /// Makes the store a new client: changes the binding, and the data of the former client.
  func begin(
    _ reason: Incarnation.Reason, after binding: StoreBinding, isAncestorGone: Bool,
    _ clients: ClientRegistry
  ) throws -> NewClient {
    var after = binding
    after.client = ClientIdentifier(
      bits: Bits128(high: options.random(), low: options.random()))
    after.ancestor = binding.client
    let incarnation = Incarnation(
      ancestor: binding.client, client: after.client, reason: reason,
      isAncestorGone: isAncestorGone, milliseconds: options.now())
    let encoder = JSONEncoder()
    try MetaTable.write(.binding, to: Array(encoder.encode(after)), database)
    let unannounced = try Self.unannounced(database) + [incarnation]
    try MetaTable.write(.incarnations, to: Array(encoder.encode(unannounced)), database)
    _ = try clients.number(of: after.client)
    try SharedLog.note(database)
    // If no store is the ancestor any more, this store takes the ancestor's change sets along into
    // another generation.
    if !isAncestorGone {
      try Outbox(database: database, clients: clients).removePublished()
    }
    let records = DeviceRecords(database: database)
    if !isAncestorGone, reason == .copied || reason == .forked {
      try records.rename("client.marker", to: "former.marker")
    }
    try records.removeAll(startingWith: "client.")
    try CommandQueue(database: database).keepUnpublished()
    _ = try settle(as: after.client, former: nil)
    if isAncestorGone {
      try options.places?.keep(
        successor: after.client.description, of: binding.client.description)
    }
    return (incarnation, after)
  }

  /// Returns the incarnations that were not announced yet, in order.
  static func unannounced(_ database: Database) throws -> [Incarnation] {
    try MetaTable.value(.incarnations, database) ?? []
  }

  /// Makes the store the beginning of a generation, as the client of `binding`: forgets the change
  /// sets that were made and received so far, and the records with these keys. Returns the token.
  ///
  /// - Parameters:
  ///   - keepsNumbers: Whether the applied change sets still count as applied.
  ///   - keepsCommand: Returns whether an unsent command with this content stays.
  func beginGeneration(
    _ binding: StoreBinding, _ configuration: StoreConfiguration, _ session: StoreSession,
    forgetting records: [String], keepsNumbers: Bool,
    keepsCommand: (_ content: [UInt8]) throws -> Bool
  ) throws -> String? {
    try Bookkeeping.clear([.changeSets, .generation], database)
    if !keepsNumbers {
      try session.ranges.removeAll()
      try session.clients.takeBackAll()
    }
    try session.commands.keepUnpublished(where: keepsCommand)
    for key in records { try session.records.write(key, to: nil) }
    try Self.write(binding, configuration, database)
    _ = try session.clients.number(of: binding.client)
    return try settle(as: binding.client, former: nil)
  }
}
