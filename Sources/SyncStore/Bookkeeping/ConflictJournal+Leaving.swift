import Foundation
import GRDB
import SyncModel

/// Entries on their way from the journal to the file beside the store: as many as one block has.
struct LeavingConflicts {
  var content = ArchiveBlock.Content()
  var entries: [(entry: ConflictJournal.Entry, isInTable: Bool)] = []
}

/// Entries that leave the table of the journal.
extension ConflictJournal {
  /// How much of the table is left when entries leave it: then not every transaction with conflicts
  /// writes to the file.
  private var rest: Bound {
    Bound(entries: bound.entries - bound.entries / 10, bytes: bound.bytes - bound.bytes / 10)
  }

  /// What is known of the file, before its first block too.
  private func archiveState() throws -> ArchiveState {
    try summary().archive ?? ArchiveState(journal: firstMark)
  }

  /// Moves an entry to the file. It is written there with the next ``flushLeaving()``; the table has
  /// it until then. If the file cannot be written, the table has it from then on.
  func moveOut(_ entry: Entry, isInTable: Bool) throws {
    guard let archive else { return try drop(entry.number, at: entry.at, isInTable: isInTable) }
    guard !hasArchiveFailed else {
      if !isInTable { try write(entry) }
      return
    }
    guard entry.contentCount <= archive.entryBytes else {
      return try drop(entry.number, at: entry.at, isInTable: isInTable)
    }
    let line = try names.archived(entry).line
    if leaving.content.byteCount + line.count > archive.blockBytes {
      try flushLeaving()
      if hasArchiveFailed { return try moveOut(entry, isInTable: isInTable) }
    }
    leaving.content.add(line, number: entry.number, at: entry.at)
    leaving.entries.append((entry, isInTable))
  }

  /// Makes the entries durable that are on their way to the file, and removes them from the table.
  private func flushLeaving() throws {
    let leaving = leaving
    self.leaving = LeavingConflicts()
    guard let archive, !leaving.entries.isEmpty else { return }
    var summary = try summary()
    var state = try archiveState()
    do throws(ArchiveProblem) {
      summary.dropped.add(try archive.append(leaving.content, &state))
    } catch {
      hasArchiveFailed = true
      state.problem = error
      summary.archive = state
      knownSummary = summary
      for (entry, isInTable) in leaving.entries where !isInTable { try write(entry) }
      return
    }
    summary.archive = state
    knownSummary = summary
    for (entry, isInTable) in leaving.entries where isInTable { try remove(entry.number) }
  }

  /// Notes that an entry is no longer kept.
  private func drop(_ number: Int64, at time: Int64, isInTable: Bool) throws {
    var summary = try summary()
    summary.dropped.add(1, at: time)
    knownSummary = summary
    if isInTable { try remove(number) }
  }

  private func remove(_ number: Int64) throws {
    try ConflictTable.remove(number, database)
  }

  /// Moves out the entries of earlier transactions before the first one of this transaction, which
  /// has more than the table holds: the file has them in order.
  func moveOutOthers() throws {
    guard let last = lastOfOthers, last > 0 else { return }
    lastOfOthers = 0
    try moveOut(from: 0, through: last) { true }
  }

  /// Moves the oldest entries that are not open to the file until the rest is within the bound. The
  /// newest one stays, however large it is.
  func trim() throws {
    // The table has them until then, and they would leave it once more.
    try flushLeaving()
    var (count, size) = try ConflictTable.size(database)
    if count > bound.entries || size > bound.bytes {
      try moveOut(from: 0, through: try summary().last - 1) { [rest] in
        count > rest.entries || size > rest.bytes
      } leaving: {
        count -= 1
        size -= $0
      }
    }
    try flushLeaving()
    guard let archive, var state = try summary().archive else { return }
    let lost = archive.trim(&state)
    knownSummary?.archive = state
    knownSummary?.dropped.add(lost)
  }

  /// Moves out entries that are not open, the oldest first, as long as `wantsMore`. Reads a few at a
  /// time: if the file could not be written for long, there may be many.
  private func moveOut(
    from first: Int64, through last: Int64, while wantsMore: () -> Bool,
    leaving: (Int) -> Void = { _ in }
  ) throws {
    var next = first
    while next <= last, !hasArchiveFailed {
      let candidates = try ConflictTable.settled(from: next, through: last, limit: 200, database)
      guard !candidates.isEmpty else { return }
      for candidate in candidates {
        guard wantsMore(), !hasArchiveFailed else { return }
        let number: Int64 = try candidate["number"]
        let size: Int = try candidate["size"]
        do {
          if let archive, size > 2 * archive.entryBytes {
            // It is not even read.
            try drop(number, at: try candidate["at"], isInTable: true)
          }
          for entry in try storedEntries("WHERE number = ?", [number]) {
            try moveOut(entry, isInTable: true)
          }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
          // A damaged entry must not stop a synchronization.
          try drop(number, at: try candidate["at"], isInTable: true)
        } catch let error as StoreError where error.code == .damaged {
          try drop(number, at: try candidate["at"], isInTable: true)
        }
        leaving(size)
        next = number + 1
      }
    }
  }
}
