import SyncDirectory
import SyncModel

/// The files to read, alternating between the clients, so that change sets that
/// depend on each other arrive at about the same time.
struct ChangeFetchQueue {
  /// One change set, with the names that claim it and the segments that may
  /// contain it.
  struct Item {
    var client: ClientIdentifier
    var number: UInt64
    var names: [ChangeSetName]
    /// The segments of the client, in the order in which to try them. All items
    /// share them; those that do not contain the number are skipped.
    var segments: [SegmentName] = []

    /// The segments that claim to contain the number.
    var containing: some Sequence<SegmentName> {
      segments.lazy.filter { $0.numbers.contains(number) }
    }
  }

  private var items: [Item]
  private var position = 0

  /// Creates a queue from the files of each client, in order of number.
  init(_ clients: [(client: ClientIdentifier, files: [Item])]) {
    var keyed: [(Int, Int, Item)] = []
    for (rank, client) in clients.enumerated() {
      // The change sets of one segment are read together.
      var turn = 0
      var last: (isInSegment: Bool, segment: SegmentName?)?
      for (index, item) in client.files.enumerated() {
        let isInSegment = item.names.isEmpty
        let segment =
          !isInSegment
          ? nil
          : last?.segment.flatMap { $0.numbers.contains(item.number) ? $0 : nil }
            ?? item.containing.first { _ in true }
        let continues =
          isInSegment && last?.isInSegment ?? false && segment == last?.segment
        if !continues { turn = index }
        keyed.append((turn, rank, item))
        last = (isInSegment, segment)
      }
    }
    items = keyed.enumerated().sorted {
      ($0.element.0, $0.element.1, $0.offset) < ($1.element.0, $1.element.1, $1.offset)
    }.map(\.element.2)
  }

  /// The number of items that the queue began with.
  var count: Int { items.count }
  /// The number of items that were taken or skipped.
  var takenCount: Int { position }
  /// Whether all were taken.
  var isEmpty: Bool { position >= items.count }

  /// Puts back the last of the taken items: they are taken next.
  mutating func giveBack(_ last: ArraySlice<Item>) {
    items.replaceSubrange(position - last.count..<position, with: last)
    position -= last.count
  }

  /// Returns the next items of wanted clients; skips the others for good.
  mutating func take(_ limit: Int, where isWanted: (ClientIdentifier) -> Bool) -> [Item] {
    var taken: [Item] = []
    while position < items.count, taken.count < max(1, limit) {
      if isWanted(items[position].client) { taken.append(items[position]) }
      position += 1
    }
    return taken
  }
}
