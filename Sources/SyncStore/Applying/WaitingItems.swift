import Synchronization
import SyncModel

/// A cache of the headers of waiting change sets. To decode one, the store has to read and check
/// the whole file, and one synchronization asks for them several times.
final class WaitingItems: Sendable {
  private let known = Mutex<[ContentHash: PendingChangeSets.Item]>([:])

  /// Returns the change sets that wait, without their changes, and whether the inbox has invalid
  /// entries besides.
  func all(_ session: StoreSession) throws -> (items: [PendingChangeSets.Item], hasInvalid: Bool) {
    let (kept, hasInvalid) = try session.inbox.all()
    let items = try items(kept.map(\.hash)) { index in
      let (client, number, hash) = kept[index]
      let bytes = try session.inbox.bytes(of: client, number: number, hash: hash)
      let summary = try ChangeSetCodec.summary(bytes)
      return PendingChangeSets.Item(
        header: summary.header, hash: hash, dependencies: summary.dependencies,
        received: nil, byteCount: bytes.count, rowCount: summary.rowCount)
    }
    return (items, hasInvalid)
  }

  /// Returns the items of these hashes, in order, and removes all others from the cache.
  ///
  /// - Parameter decode: Decodes the item of the hash at an index.
  private func items(
    _ hashes: [ContentHash], _ decode: (Int) throws -> PendingChangeSets.Item
  ) throws -> [PendingChangeSets.Item] {
    let before = known.withLock { $0 }
    let items = try hashes.enumerated().map { try before[$1] ?? decode($0) }
    let after = Dictionary(
      zip(hashes, items).map { ($0, $1) }, uniquingKeysWith: { first, _ in first })
    known.withLock { $0 = after }
    return items
  }
}
