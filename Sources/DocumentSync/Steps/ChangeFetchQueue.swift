import SyncDirectory
import SyncModel

/// The files to read, one client after the other in turn, so that what
/// depends on each other arrives about together.
struct ChangeFetchQueue {
  /// One change set, the names that claim to be it, and the segments that
  /// claim to contain it.
  struct Item {
    var client: ClientIdentifier
    var number: UInt64
    var names: [ChangeSetName]
    var segments: [SegmentName] = []
  }

  private var items: [Item]
  private var position = 0

  /// Orders the files of each client, which are in order of number.
  init(_ clients: [(client: ClientIdentifier, files: [Item])]) {
    var keyed: [(Int, Int, Item)] = []
    for (rank, client) in clients.enumerated() {
      // What is in one segment is read in one go.
      var turn = 0
      var last: Item?
      for (index, item) in client.files.enumerated() {
        let continues =
          item.names.isEmpty && last?.names.isEmpty ?? false
          && item.segments.first == last?.segments.first
        if !continues { turn = index }
        keyed.append((turn, rank, item))
        last = item
      }
    }
    items = keyed.enumerated().sorted {
      ($0.element.0, $0.element.1, $0.offset) < ($1.element.0, $1.element.1, $1.offset)
    }.map(\.element.2)
  }

  /// How many were put in.
  var count: Int { items.count }
  /// How many were taken, or passed over.
  var takenCount: Int { position }
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
