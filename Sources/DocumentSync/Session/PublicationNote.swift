import Foundation
import SyncModel
import SyncStore

/// A note in the store that this client may have unfinished files in its `Temporary` folder.
///
/// It is written before the first publication of an operation and removed after the last one. If it
/// is there when an operation begins, the process of an earlier operation was killed. Then it stays
/// until a synchronization has removed the unfinished files. So no folder has to be listed to find
/// that out.
final class PublicationNote: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var store: LocalStore?
  /// The client of the store when the note was looked for.
  nonisolated(unsafe) private var client: ClientIdentifier?
  /// Whether an earlier operation has left the note.
  nonisolated(unsafe) private var wasLeft = false
  /// Whether the note is in the store.
  nonisolated(unsafe) private var isThere = false

  /// Names the store whose client publishes; `nil` for one that is not in its place yet.
  func keep(in store: LocalStore?) {
    lock.withLock {
      guard self.store !== store else { return }
      (self.store, client) = (store, nil)
    }
  }

  /// The records of the store, once the note was looked for.
  private func records() throws -> StoreRecords? {
    guard let store else { return nil }
    let records = StoreRecords(store)
    if client != store.binding.client {
      wasLeft = try records.hasUnfinished()
      isThere = wasLeft
      client = store.binding.client
    }
    return records
  }

  /// Whether an operation before this one has left the note.
  func isLeft() throws -> Bool { try lock.withLock { try records() != nil && wasLeft } }

  /// Writes the note, unless it is there; before a file is published.
  func begin() throws {
    try lock.withLock {
      guard let records = try records(), !isThere else { return }
      try records.noteUnfinished(true)
      isThere = true
    }
  }

  /// Notes that the unfinished files of earlier operations were removed.
  func noteRemoval() { lock.withLock { wasLeft = false } }

  /// Removes the note, unless an earlier operation has left it and its unfinished files may be
  /// there.
  func end() throws {
    try lock.withLock {
      guard let records = try records(), isThere, !wasLeft else { return }
      try records.noteUnfinished(false)
      isThere = false
    }
  }
}
