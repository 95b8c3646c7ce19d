import GRDB
import SyncModel

/// The change sets that this client has sealed, whether or not they count as applied.
///
/// Usually all of them count as applied from the moment of sealing. After the store's content was
/// exchanged, some may wait for change sets of other clients, as any client's do. Then the waiting
/// ones are in the inbox, and change sets sealed meanwhile are in the tables without counting as
/// applied. Once the last waiting one is applied, all count as applied.
extension StoreSession {
  /// Returns the last change set of this client, waiting ones included; `nil` for none.
  func ownHead() throws -> VersionVector.Entry? {
    let applied = try clients.vector()[ownClient]
    guard let sealed = try outbox.last(of: own) else { return applied }
    return sealed.number > applied?.number ?? 0 ? sealed : applied
  }

  /// Returns the change sets of other clients that have been applied.
  func appliedVector() throws -> VersionVector {
    var vector = try clients.vector()
    vector[ownClient] = nil
    return vector
  }

  /// Returns whether own change sets wait for those of other clients.
  func isAwaitingOthers() throws -> Bool { try inbox.has(ownClient) }

  /// Marks change sets that were sealed while others waited as applied, once none waits.
  func completeOwn() throws {
    guard try !isAwaitingOthers(), let head = try ownHead() else { return }
    guard try clients.vector().number(of: ownClient) < head.number else { return }
    try clients.setLast(head, of: ownClient)
  }

  /// Returns the file of an own change set: from the outbox, the given one if the outbox no longer
  /// has it, or that in the inbox if it waits. Returns `nil` if there is none.
  func bytes(of sealed: SealedChangeSet, given: [UInt8]?) throws -> [UInt8]? {
    if let bytes = try outbox.file(sealed.number, of: own)?.bytes, !bytes.isEmpty { return bytes }
    if let given { return given }
    guard try inbox.numbers(of: ownClient).contains(sealed.number) else { return nil }
    return try inbox.bytes(of: ownClient, number: sealed.number, hash: sealed.hash)
  }

  /// Calls `body` with the change sets that this store has sealed, as its present client or as
  /// another one, and that a vector does not contain: those of former clients first.
  ///
  /// Leaves out those of former clients whose bytes the store no longer has: they are fetched like
  /// the change sets of any other client.
  ///
  /// - Parameter bytes: The files of own change sets whose bytes the store no longer has, by their
  ///   numbers.
  func sealedChangeSets(
    beyond vector: VersionVector, bytes given: [UInt64: [UInt8]],
    _ body: (ReceivedChangeSet) throws -> Void
  ) throws {
    for sealed in try outbox.all(except: own, onlyUnpublished: false)
    where sealed.number > vector.number(of: sealed.client) && sealed.isKept {
      let author = try clients.number(of: sealed.client)
      try body(sealedChangeSet(sealed.number, of: author, given: nil))
    }
    let last = try ownHead()?.number ?? 0
    var number = vector.number(of: ownClient)
    while number < last {
      number += 1
      try body(sealedChangeSet(number, of: own, given: given[number]))
    }
  }

  private func sealedChangeSet(
    _ number: UInt64, of author: Int32, given: [UInt8]?
  ) throws -> ReceivedChangeSet {
    let file = try outbox.file(number, of: author)
    let kept = file?.bytes ?? []
    let bytes = kept.isEmpty ? given ?? [] : kept
    let hash = ContentHash(of: bytes)
    guard !bytes.isEmpty, file.map({ $0.hash == hash }) ?? true else {
      throw StoreError(
        .changeSetMissing, path: "",
        message: "The whole store does not contain this device's change set \(number), and the "
          + "store does not keep it any more.",
        remedy: "Wait until its file is in the shared directory again, or until a newer whole "
          + "store is.")
    }
    return ReceivedChangeSet(
      changeSet: try ChangeSetCodec.decode(bytes), hash: hash, bytes: bytes)
  }

  // MARK: - Another generation

  private static let returningKeys = "returning/"

  /// Empties the inbox and the outbox, and stores the change sets of the outbox that a vector does
  /// not contain, to be rewritten. Returns all change sets that are to be rewritten.
  func setAsideOwn(
    beyond vector: VersionVector, bytes: [UInt64: [UInt8]]
  ) throws -> [ContentReplacement.OwnChangeSet] {
    try sealedChangeSets(beyond: vector, bytes: bytes) { try keepReturning([$0.bytes]) }
    try outbox.removeAll()
    try inbox.removeAll()
    return try returning()
  }

  /// Stores files of change sets that are to be rewritten, after those that are stored already.
  func keepReturning(_ changeSets: [[UInt8]]) throws {
    var count = try records.count(startingWith: Self.returningKeys)
    for bytes in changeSets {
      let digits = String(count)
      count += 1
      try records.write(
        Self.returningKeys + String(repeating: "0", count: 20 - digits.count) + digits, to: bytes)
    }
  }

  /// Returns the own change sets that are to be rewritten, in order.
  func returning() throws -> [ContentReplacement.OwnChangeSet] {
    try records.values(startingWith: Self.returningKeys).map { bytes in
      let header: SyncChangeSet.Header
      do {
        header = try ChangeSetCodec.decode(bytes).header
      } catch let error as CodecError {
        throw DatabaseError(
          resultCode: .SQLITE_CORRUPT,
          message: "docsync_record: a change set to be rewritten is damaged: \(error)")
      }
      return ContentReplacement.OwnChangeSet(
        client: header.client, number: header.number, hash: ContentHash(of: bytes), bytes: bytes)
    }
  }

  func forgetReturning() throws {
    try records.removeAll(startingWith: Self.returningKeys)
  }
}
