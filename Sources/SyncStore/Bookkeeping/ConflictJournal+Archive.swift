import GRDB
import SyncModel

/// The entries of the journal that are in the archive.
extension ConflictJournal {
  /// Returns the blocks of this journal in the archive.
  private func blocks() throws -> [ConflictArchive.Block] {
    guard let journal = try summary().archived?.journal else { return [] }
    return try archive?.blocks().filter { $0.index?.journal == journal } ?? []
  }

  /// Returns the numbers of archived entries that the table does not have: it has an entry that a
  /// rolled back transaction archived.
  private func numbers(in blocks: [ConflictArchive.Block]) throws -> Set<Int64> {
    var numbers = Set(blocks.flatMap { $0.index?.numbers ?? [] })
    if !numbers.isEmpty { numbers.subtract(try ConflictTable.numbers(database)) }
    let last = try summary().last
    return numbers.filter { $0 <= last }
  }

  /// Returns the archived entries that the table does not have, the newest first.
  func archivedEntries() throws -> [ArchivedConflict] {
    let blocks = try blocks()
    let numbers = try numbers(in: blocks)
    return try archive?.entries(of: blocks).filter { numbers.contains($0.number) } ?? []
  }

  /// Returns an archived entry and those that were archived just before and after it; `nil` if it is
  /// not there.
  func archivedEntry(
    _ number: Int64
  ) throws -> (entry: ArchivedConflict, neighbors: [ArchivedConflict])? {
    let blocks = try blocks()
    guard try numbers(in: blocks).contains(number),
      let place = blocks.lastIndex(where: { $0.index?.numbers.contains(number) ?? false })
    else { return nil }
    let near = blocks[max(place - 1, 0)...min(place + 1, blocks.count - 1)]
    let entries = try archive?.entries(of: Array(near)) ?? []
    return entries.first { $0.number == number }.map { ($0, entries) }
  }

  /// Returns how many entries are where.
  func places() throws -> Conflict.Places {
    let summary = try summary()
    let blocks = try blocks()
    var places = Conflict.Places(
      inTable: try ConflictTable.count(database), inArchive: try numbers(in: blocks).count,
      archive: archive?.path ?? "")
    places.dropped = summary.dropped
    if let moved = summary.archived?.moved, moved.count > places.inArchive,
      let first = moved.firstMilliseconds, let last = moved.lastMilliseconds
    {
      // The oldest blocks have gone, or the store came here without its file.
      places.dropped.add(moved.count - places.inArchive, at: first)
      places.dropped.add(0, at: blocks.compactMap { $0.index?.first }.min() ?? last)
    }
    return places
  }
}
