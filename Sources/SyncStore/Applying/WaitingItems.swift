import Synchronization
import SyncModel

/// The headers of the change sets that wait in a store, each decoded once: whole files have to be
/// read and checked for that, and one synchronization asks for them several times.
final class WaitingItems: Sendable {
  private let known = Mutex<[ContentHash: PendingChangeSets.Item]>([:])

  /// The items of these hashes, in order. Forgets all others.
  ///
  /// - Parameter decode: Decodes the one at an index.
  func items(
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
