import SyncModel

/// The change sets that are to be applied, and the order in which they can be.
struct PendingChangeSets {
  /// A change set that is to be applied.
  struct Item {
    let header: SyncChangeSet.Header
    let hash: ContentHash
    let dependencies: VersionVector
    /// The received change set; `nil` for one in the inbox. That one is read only when it is
    /// applied: any number of them can wait.
    let received: ReceivedChangeSet?
    /// The length of its file.
    let byteCount: Int
    let rowCount: Int

    /// Returns the change set, read from the inbox if it waits there.
    func changeSet(_ session: StoreSession) throws -> SyncChangeSet {
      if let received { return received.changeSet }
      return try ChangeSetCodec.decode(
        session.inbox.bytes(of: header.client, number: header.number, hash: hash))
    }

    /// Throws if it belongs to another document or generation, or does not follow its author's last
    /// applied change set.
    func check(_ session: StoreSession, _ binding: StoreBinding) throws {
      guard header.root == binding.root, header.document == binding.document,
        header.generation == binding.generation
      else {
        throw StoreError(
          .foreignChangeSet, path: "",
          message: "Change set \(header.number) of \(header.client) belongs to another document.",
          remedy: "Check the shared directory with \(.listDocuments).")
      }
      if let last = try session.clients.vector()[header.client], header.previous != last.hash {
        throw StoreError(
          .fork, path: "",
          message: "Change set \(header.number) of \(header.client) does not follow the "
            + "one that was applied before it.",
          remedy:
            "Check the shared directory with \(.listChangeSets); another copy of that device's "
            + "store may have published under the same number.")
      }
    }

    /// Returns what must still be applied before this change set: for each client, the last number.
    fileprivate func missing(_ vector: VersionVector) -> [ClientIdentifier: UInt64] {
      var missing: [ClientIdentifier: UInt64] = [:]
      for (client, entry) in dependencies.entries
      where vector.number(of: client) < entry.number {
        missing[client] = entry.number
      }
      if vector.number(of: header.client) + 1 < header.number {
        missing[header.client] = header.number - 1
      }
      return missing
    }
  }

  private(set) var rest: [Item]
  /// The change sets that wait for a confirmation of what they delete.
  private let unconfirmed: UnconfirmedDeletions

  /// - Parameters:
  ///   - kept: The change sets in the inbox.
  ///   - unconfirmed: Those that are not to be applied although all before them are.
  init(
    _ received: [ReceivedChangeSet], kept: [Item],
    unconfirmed: UnconfirmedDeletions = UnconfirmedDeletions()
  ) {
    self.unconfirmed = unconfirmed
    rest = received.map {
      Item(
        header: $0.changeSet.header, hash: $0.hash, dependencies: $0.changeSet.dependencies,
        received: $0, byteCount: $0.bytes.count, rowCount: $0.changeSet.rowCount)
    }
    let hashes = Set(rest.map(\.hash))
    rest += kept.filter { !hashes.contains($0.hash) }
    rest.sort {
      ($0.header.client, $0.header.number) < ($1.header.client, $1.header.number)
    }
  }

  /// Returns the remaining change sets, each with those for which it waits.
  func waiting(_ session: StoreSession) throws -> [StoreStatus.WaitingChangeSet] {
    let vector = try session.clients.vector()
    return rest.map { item in
      var waiting = StoreStatus.WaitingChangeSet(
        client: item.header.client, number: item.header.number, hash: item.hash,
        missing: item.missing(vector))
      waiting.deletions = unconfirmed.deletions(of: item.hash)
      return waiting
    }
  }

  /// Whether one of the files is unusually long: over 8 MiB.
  var isLarge: Bool { rest.contains { $0.byteCount > 8 << 20 } }

  /// Drops a change set and its author's later ones.
  mutating func refuse(_ item: Item) {
    rest.removeAll {
      $0.header.client == item.header.client && $0.header.number >= item.header.number
    }
  }

  /// Removes and returns the next change set that can be applied. Drops those that have been
  /// applied.
  mutating func takeNext(_ session: StoreSession, _ binding: StoreBinding) throws -> Item? {
    let vector = try session.clients.vector()
    rest.removeAll { $0.header.number <= vector.number(of: $0.header.client) }
    for (index, item) in rest.enumerated() {
      guard item.header.number == vector.number(of: item.header.client) + 1,
        vector.contains(item.dependencies), !unconfirmed.contains(item.hash)
      else { continue }
      return rest.remove(at: index)
    }
    return nil
  }
}
