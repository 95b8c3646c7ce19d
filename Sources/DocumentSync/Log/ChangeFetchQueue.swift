import SyncDirectory
import SyncModel

/// The files to read, by turns from each client, so that change sets that
/// depend on each other arrive at about the same time.
struct ChangeFetchQueue {
  /// One change set, the names that claim to be it, and the segments that
  /// claim to contain it.
  struct Item {
    var client: ClientIdentifier
    var number: UInt64
    var names: [ChangeSetName]
    /// Segments of the client, in the order in which they are tried; all items
    /// share them, and those that do not contain the number are passed over.
    var segments: [SegmentName] = []

    /// Those that claim to contain the number.
    var containing: some Sequence<SegmentName> {
      segments.lazy.filter { $0.numbers.contains(number) }
    }
  }

  private var items: [Item]
  private var position = 0

  /// Orders the files of each client, which are in order of number.
  init(_ clients: [(client: ClientIdentifier, files: [Item])]) {
    var keyed: [(Int, Int, Item)] = []
    for (rank, client) in clients.enumerated() {
      // The change sets of one segment are read in one go.
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

  /// How many were put in.
  var count: Int { items.count }
  /// How many were taken, or passed over.
  var takenCount: Int { position }
  /// Whether all were taken.
  var isEmpty: Bool { position >= items.count }

  /// Puts back the last of those that were taken: they are taken next.
  mutating func giveBack(_ last: ArraySlice<Item>) {
    items.replaceSubrange(position - last.count..<position, with: last)
    position -= last.count
  }

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
