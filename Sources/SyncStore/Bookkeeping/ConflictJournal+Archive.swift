import Foundation
import GRDB
import SyncModel

/// The entries of the journal that are in the file beside the store.
extension ConflictJournal {
  /// An entry of the file.
  struct InArchive {
    var entry: ArchivedConflict
    /// The number of its block.
    var block: UInt64
    /// The entries that went to the file with it or just before or after it, each with its block.
    var neighbors: [(entry: ArchivedConflict, block: UInt64)]
  }

  /// Runs `body` with the file and its blocks that count; returns `nil` if there are none. Throws
  /// ``IncompleteArchive`` if some are missing and ``ConflictArchive/mustBeWhole``.
  private func reading<Result>(
    _ body: (ArchiveFile, _ live: [ArchiveBlock]) throws -> Result
  ) throws -> Result? {
    guard let state = try summary().archive, state.count > 0 else { return nil }
    guard archive?.mustBeWhole == true else {
      return try archive?.reading { try body($0, $0.live(state)) }
    }
    do {
      let result = try archive?.reading { file in
        let live = file.live(state)
        guard state.missingCount(live) == 0 else { throw IncompleteArchive() }
        return try body(file, live)
      }
      guard let result else { throw IncompleteArchive() }
      return result
    } catch is ArchiveProblem {
      throw IncompleteArchive()
    }
  }

  /// Returns the entries of a block; none if it is damaged, unless ``ConflictArchive/mustBeWhole``.
  private func entries(of block: ArchiveBlock, _ file: ArchiveFile) throws -> [ArchivedConflict] {
    if let entries = try block.entries(file) { return entries }
    if archive?.mustBeWhole == true { throw IncompleteArchive() }
    return []
  }

  /// Returns an entry of the file that the table does not have; `nil` if there is none. Throws
  /// `notReadable` and `newerFormat`.
  func archivedEntry(_ number: Int64) throws -> InArchive? {
    do {
      return try reading { file, live in
        guard let place = live.lastIndex(where: { $0.index.contains(number) }) else { return nil }
        var near: [(entry: ArchivedConflict, block: UInt64)] = []
        for block in live[max(place - 1, 0)...min(place + 1, live.count - 1)] {
          near += try entries(of: block, file).map { ($0, block.number) }
        }
        let found = near.last { $0.entry.number == number && $0.block == live[place].number }
        return found.map { InArchive(entry: $0.entry, block: $0.block, neighbors: near) }
      } ?? nil
    } catch let problem as ArchiveProblem {
      throw problem.error(archive?.path ?? "")
    }
  }

  /// Returns the numbers of the newest entries before a number, of the table and of the file, each
  /// with its block if it is in the file; at most `limit`.
  ///
  /// If the file cannot be read, returns those of the table.
  func numbers(
    before number: Int64, limit: Int
  ) throws -> [(number: Int64, block: UInt64?)] {
    let inTable = try ConflictTable.numbers(before: number, limit: limit, database)
    let returned = try summary().archive?.returned.isEmpty == false
    let known = returned ? Set(try ConflictTable.numbers(database)) : []
    let archived =
      try readingWhatIsReadable { _, live in
        Self.newest(of: live, before: number, limit: limit, without: known)
      } ?? []
    let all = inTable.map { (number: $0, block: UInt64?.none) } + archived
    return Array(all.sorted { $0.number > $1.number }.prefix(limit))
  }

  /// Returns the numbers of the newest entries of blocks, the newest first. If two blocks have an
  /// entry, the later one has its last state.
  private static func newest(
    of live: [ArchiveBlock], before number: Int64, limit: Int, without known: Set<Int64>
  ) -> [(number: Int64, block: UInt64?)] {
    let spans = live.flatMap { block in
      block.index.ranges.map {
        (low: $0[0], high: min($0[1], number - 1), block: block.number)
      }
    }.filter { $0.low <= $0.high }.sorted { $0.high > $1.high }
    var found: [Int64: UInt64] = [:]
    var least = Int64.min
    for span in spans where span.high >= least {
      var count = 0
      var next = span.high
      while next >= span.low, count < limit {
        if !known.contains(next) {
          found[next] = max(found[next] ?? 0, span.block)
          count += 1
        }
        next -= 1
      }
      guard found.count >= 2 * limit else { continue }
      let newest = found.keys.sorted(by: >).prefix(limit)
      found = found.filter { $0.key >= newest.last ?? .min }
      least = newest.last ?? .min
    }
    return found.sorted { $0.key > $1.key }.prefix(limit).map { ($0.key, $0.value) }
  }

  /// Returns the entries of the file with given numbers and blocks, in no order. Reads one block at
  /// a time, and leaves out damaged ones.
  func archivedEntries(_ wanted: [(number: Int64, block: UInt64?)]) throws -> [ArchivedConflict] {
    let numbers = Dictionary(
      grouping: wanted.filter { $0.block != nil }, by: { $0.block ?? 0 }
    ).mapValues { Set($0.map(\.number)) }
    guard !numbers.isEmpty else { return [] }
    return try readingWhatIsReadable { file, live in
      try live.flatMap { block in
        guard let wanted = numbers[block.number] else { return [ArchivedConflict]() }
        return try entries(of: block, file).filter { wanted.contains($0.number) }
      }
    } ?? []
  }

  /// Does the same as ``reading(_:)``, but returns `nil` if the file cannot be read: ``places()``
  /// tells that.
  private func readingWhatIsReadable<Result>(
    _ body: (ArchiveFile, _ live: [ArchiveBlock]) throws -> Result
  ) throws -> Result? {
    do {
      return try reading(body)
    } catch is ArchiveProblem {
      return nil
    }
  }

  /// Notes that an entry comes back from the file: ``write(_:)`` enters it in the table again.
  func takeBack(from block: UInt64) throws {
    var summary = try summary()
    summary.archive?.takeBack(from: block)
    knownSummary = summary
  }

  // MARK: - Where entries are

  /// Returns how many entries are where.
  func places() throws -> Conflict.Places {
    let summary = try summary()
    var places = Conflict.Places(inTable: try ConflictTable.count(database))
    places.dropped = summary.dropped
    guard let archive, let state = summary.archive else { return places }
    places.archive = archive.path
    places.problem = state.problem?.warning(archive.path).message
    do {
      places.unreadable = try reading { state.missingCount($1) } ?? state.count
    } catch let problem as ArchiveProblem {
      places.unreadable = state.count
      places.problem = places.problem ?? problem.error(archive.path).message
    }
    places.inArchive = state.count - places.unreadable
    return places
  }

  /// The marks of blocks in the file that are this store's.
  func archiveMarks() throws -> Set<[UInt8]> {
    [firstMark, try soundArchiveState().map { Array($0.journal) } ?? firstMark]
  }

  /// Returns how many entries are in the file, as far as the store knows.
  func archivedCount() throws -> Int { try soundArchiveState()?.count ?? 0 }

  /// Returns what is known of the file; `nil` if nothing is, or if the record of it is damaged, which
  /// must not stop anyone: verifying finds it.
  private func soundArchiveState() throws -> ArchiveState? {
    do {
      return try summary().archive
    } catch let error as StoreError where error.code == .damaged {
      return nil
    }
  }

  // MARK: - Warnings

  /// The warning that the file could not be written last; `nil` if it could.
  func archiveWarning() throws -> SyncWarning? {
    guard let archive else { return nil }
    return try soundArchiveState()?.problem?.warning(archive.path)
  }

  /// Whether ``settleArchive()`` has anything to do.
  var isArchiveUnsettled: Bool {
    get throws {
      guard let state = try summary().archive else { return false }
      return state.problem != nil || !state.notices.isEmpty
    }
  }

  /// Tries once more to move out what the file could not take. Returns the warnings about the file
  /// that no synchronization has reported, and the one that it still cannot be written.
  func settleArchive() throws -> [SyncWarning] {
    var summary = try summary()
    summary.archive?.problem = nil
    knownSummary = summary
    try finish()
    summary = try self.summary()
    let notices = summary.archive?.notices ?? []
    summary.archive?.notices = []
    knownSummary = summary
    return SyncWarning.joining(notices) + [try archiveWarning()].compactMap(\.self)
  }
}
