import GRDB
import SyncModel

/// Change sets that are to be applied, and the order in which they can be.
struct PendingChangeSets {
  /// One of them.
  struct Item {
    let header: SyncChangeSet.Header
    let hash: ContentHash
    let changeSet: SyncChangeSet
    /// Its bytes, if the store does not keep them yet.
    let newBytes: [UInt8]?
    /// The length of its file.
    let byteCount: Int

    var rowCount: Int { changeSet.rowCount }

    /// Throws if it does not belong where the store is.
    func check(_ session: StoreSession, _ binding: StoreBinding) throws {
      guard header.root == binding.root, header.document == binding.document,
        header.generation == binding.generation
      else {
        throw StoreError(
          .foreignChangeSet, path: "",
          message: "Change set \(header.number) of \(header.client) belongs to another document.",
          remedy: "Check the shared directory with “docsync documents”.")
      }
      if let last = try session.clients.vector()[header.client], header.previous != last.hash {
        throw StoreError(
          .fork, path: "",
          message: "Change set \(header.number) of \(header.client) does not follow the "
            + "one that was applied before it.",
          remedy: "Check the shared directory with “docsync log”; another copy of that device's "
            + "store may have published under the same number.")
      }
    }

    /// The change sets that have to be applied before this one.
    func missing(
      _ session: StoreSession, _ binding: StoreBinding
    ) throws -> [ClientIdentifier: UInt64] {
      let vector = try session.clients.vector()
      var missing: [ClientIdentifier: UInt64] = [:]
      for (client, entry) in changeSet.dependencies.entries
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

  init(_ received: [ReceivedChangeSet], kept: [(hash: ContentHash, bytes: [UInt8])]) throws {
    rest = received.map {
      Item(
        header: $0.changeSet.header, hash: $0.hash, changeSet: $0.changeSet, newBytes: $0.bytes,
        byteCount: $0.bytes.count)
    }
    for item in kept where !rest.contains(where: { $0.hash == item.hash }) {
      let changeSet = try ChangeSetCodec.decode(item.bytes)
      rest.append(
        Item(
          header: changeSet.header, hash: item.hash, changeSet: changeSet, newBytes: nil,
          byteCount: item.bytes.count))
    }
    rest.sort {
      ($0.header.client, $0.header.number) < ($1.header.client, $1.header.number)
    }
  }

  /// Drops a change set and its author's later ones.
  mutating func refuse(_ item: Item) {
    rest.removeAll {
      $0.header.client == item.header.client && $0.header.number >= item.header.number
    }
  }

  /// Takes out the next one that can be applied; drops those that have been.
  mutating func takeNext(_ session: StoreSession, _ binding: StoreBinding) throws -> Item? {
    let vector = try session.clients.vector()
    rest.removeAll { $0.header.number <= vector.number(of: $0.header.client) }
    for (index, item) in rest.enumerated() {
      guard item.header.number == vector.number(of: item.header.client) + 1,
        vector.contains(item.changeSet.dependencies)
      else { continue }
      return rest.remove(at: index)
    }
    return nil
  }
}
