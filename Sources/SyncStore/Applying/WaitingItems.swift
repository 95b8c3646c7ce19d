import Synchronization
import SyncModel

/// A cache of the headers of waiting change sets. To decode one, the store has to read and check
/// the whole file, and one synchronization asks for them several times.
final class WaitingItems: Sendable {
  private let known = Mutex<[ContentHash: PendingChangeSets.Item]>([:])

  /// Returns the change sets that wait, without their changes, and whether the inbox has invalid
  /// entries besides.
  ///
  /// - Parameter forgetsOthers: Whether to remove all others from the cache. The session must not have
  ///   an older state of the store than other sessions.
  func all(
    _ session: StoreSession, forgetsOthers: Bool = true
  ) throws -> (items: [PendingChangeSets.Item], hasInvalid: Bool) {
    let (kept, hasInvalid) = try session.inbox.all()
    let items = try items(kept.map(\.hash), forgetsOthers: forgetsOthers) { index in
      let (client, number, hash) = kept[index]
      let bytes = try session.inbox.bytes(of: client, number: number, hash: hash)
      let summary = try ChangeSetCodec.summary(bytes)
      return PendingChangeSets.Item(
        header: summary.header, hash: hash, dependencies: summary.dependencies,
        received: nil, byteCount: bytes.count, rowCount: summary.rowCount)
    }
    return (items, hasInvalid)
  }

  /// Returns the items of these hashes, in order.
  ///
  /// - Parameter decode: Decodes the item of the hash at an index.
  private func items(
    _ hashes: [ContentHash], forgetsOthers: Bool,
    _ decode: (Int) throws -> PendingChangeSets.Item
  ) throws -> [PendingChangeSets.Item] {
    let before = known.withLock { $0 }
    let items = try hashes.enumerated().map { try before[$1] ?? decode($0) }
    let after = Dictionary(
      zip(hashes, items).map { ($0, $1) }, uniquingKeysWith: { first, _ in first })
    known.withLock { known in
      if forgetsOthers { known = after } else { known.merge(after) { first, _ in first } }
    }
    return items
  }
}
