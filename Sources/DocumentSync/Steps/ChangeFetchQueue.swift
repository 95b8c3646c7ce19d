import SyncDirectory
import SyncModel

/// The files to read, one client after the other in turn, so that what
/// depends on each other arrives about together.
struct ChangeFetchQueue {
  /// One change set, and the names that claim to be it.
  struct Item {
    var client: ClientIdentifier
    var number: UInt64
    var names: [ChangeSetName]
  }

  private var items: [Item]
  private var position = 0

  /// Orders the files of each client, which are in order of number.
  init(_ clients: [(client: ClientIdentifier, files: [Item])]) {
    var keyed: [(Int, Int, Item)] = []
    for (rank, client) in clients.enumerated() {
      for (index, item) in client.files.enumerated() { keyed.append((index, rank, item)) }
    }
    items = keyed.sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.2)
  }

  /// How many were put in.
  var count: Int { items.count }
  /// Whether all were taken.
  var isEmpty: Bool { position >= items.count }

  /// The next items of clients that are still wanted; the others are passed
  /// over for good.
  mutating func take(_ limit: Int, where isWanted: (ClientIdentifier) -> Bool) -> [Item] {
    var taken: [Item] = []
    while position < items.count, taken.count < max(1, limit) {
      if isWanted(items[position].client) { taken.append(items[position]) }
      position += 1
    }
    return taken
  }
}
