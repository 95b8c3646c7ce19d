import SyncModel

/// The newest entries for the journal, as many as it can hold. The end of the transaction would
/// move older ones to the archive, so they are never written to the table.
struct PendingConflicts {
  /// In order of number; those before `start` were dropped.
  private var entries: [ConflictJournal.Entry] = []
  private var start = 0
  private var byteCount = 0

  /// Adds an entry; returns the older ones that have no place beside it any more.
  mutating func add(
    _ entry: ConflictJournal.Entry, within bound: ConflictJournal.Bound
  ) -> [ConflictJournal.Entry] {
    entries.append(entry)
    byteCount += entry.contentCount
    var dropped: [ConflictJournal.Entry] = []
    while entries.count - start > max(bound.entries, 1)
      || byteCount > bound.bytes && entries.count - start > 1
    {
      byteCount -= entries[start].contentCount
      dropped.append(entries[start])
      start += 1
    }
    if start > max(bound.entries, 1_000) {
      entries.removeFirst(start)
      start = 0
    }
    return dropped
  }

  /// Removes and returns the entries that are left.
  mutating func takeAll() -> [ConflictJournal.Entry] {
    guard !entries.isEmpty else { return [] }
    defer { self = PendingConflicts() }
    return Array(entries[start...])
  }
}

extension ConflictJournal.Entry {
  /// The number of bytes of text, blobs and references in it.
  var contentCount: Int {
    func count(_ cells: [Cell]?) -> Int {
      (cells ?? []).reduce(0) { $0 + $1.value.contentCount }
    }
    return (base?.contentCount ?? 0) + count(local) + count(remote)
  }
}
