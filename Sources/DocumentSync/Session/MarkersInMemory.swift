import SyncModel

/// Markers in memory together, up to a limit: the directory can contain any
/// number of them, each as long as a file may be.
struct MarkersInMemory<Key: Hashable> {
  /// The most entries that the lists and vectors of all markers have together;
  /// each takes some 100 bytes.
  private let greatestWeight: Int

  private(set) var markers: [Key: RecentSyncFile]
  /// The markers that were left out because there were too many.
  private(set) var leftOut: [Key] = []
  private var weight: Int

  init(_ markers: [Key: RecentSyncFile] = [:], greatestWeight: Int = 100_000) {
    self.greatestWeight = greatestWeight
    self.markers = markers
    weight = markers.values.reduce(0) { $0 + $1.weight }
    bound()
  }

  /// Adds a marker, or replaces the earlier one.
  mutating func add(_ marker: RecentSyncFile, for key: Key) {
    weight += marker.weight - (markers.updateValue(marker, forKey: key)?.weight ?? 0)
    bound()
  }

  /// Leaves out the longest markers, some more than needed, so that this
  /// happens rarely.
  private mutating func bound() {
    guard weight > greatestWeight else { return }
    for (key, marker) in markers.sorted(by: { $0.value.weight > $1.value.weight })
    where weight > greatestWeight / 4 * 3 {
      markers[key] = nil
      leftOut.append(key)
      weight -= marker.weight
    }
  }
}

extension RecentSyncFile {
  /// The number of entries of its lists and vectors, plus one.
  fileprivate var weight: Int {
    wholeStores.reduce(
      1 + applied.entries.count + commandsApplied.entries.count + members.count + segments.count
        + retired.count + waiting.count
    ) { $0 + 1 + $1.vector.entries.count + $1.commands.entries.count }
  }
}
