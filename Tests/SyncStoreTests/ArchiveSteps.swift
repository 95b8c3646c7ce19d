import Foundation
import Synchronization
import SyncModel

@testable import SyncStore

/// What happens at the steps of writing the file with older conflicts, for the options of a store.
final class ArchiveSteps: Sendable {
  private let action = Mutex<(@Sendable (ConflictArchiveStep) throws -> Void)?>(nil)
  private let seen = Mutex<[ConflictArchiveStep]>([])

  /// The steps so far.
  var all: [ConflictArchiveStep] { seen.withLock { $0 } }

  /// Calls `action` at each step from now on; `nil` calls nothing.
  func at(_ action: (@Sendable (ConflictArchiveStep) throws -> Void)?) {
    self.action.withLock { $0 = action }
  }

  func pass(_ step: ConflictArchiveStep) throws {
    seen.withLock { $0.append(step) }
    try action.withLock { $0 }?(step)
  }
}

/// Two devices that disagree, with small journals.
struct Disagreement {
  let scratch: Scratch
  let steps = ArchiveSteps()
  let one: Device
  let two: Device

  /// - Parameter count: How many conflicts about one cell they have had, one after the other.
  init(
    _ count: Int, keeping entries: Int = 3, archiveBytes: Int = 64 << 20, _ more: String = ""
  ) throws {
    scratch = try Scratch()
    var options = StoreOptions()
    options.conflictEntries = entries
    options.conflictArchiveBytes = archiveBytes
    options.onArchiveStep = { [steps] in try steps.pass($0) }
    let devices = try scratch.devices(
      1,
      "CREATE TABLE note (id TEXT PRIMARY KEY, a, b); INSERT INTO note VALUES ('x', 1, 1);" + more,
      options: options)
    one = devices[0]
    let path = scratch.path + "/two.db"
    _ = try one.store.snapshot(to: path)
    // Only the first device tells its steps.
    options.onArchiveStep = nil
    two = try Device(
      store: try LocalStore.adopt(
        snapshotAt: path, binding: scratch.binding("two"), options: options), path: path)
    try one.setClock(offset: -100)
    try two.setClock(offset: -50)
    for round in 0..<count { try disagree(round) }
  }

  /// Has the devices disagree about the cell once more.
  func disagree(_ round: Int) throws {
    try edit(round)
    try exchange([one, two])
  }

  func edit(_ round: Int) throws {
    try one.run("UPDATE note SET a = 'one \(round)' WHERE id = 'x'")
    try two.run("UPDATE note SET a = 'two \(round)' WHERE id = 'x'")
  }

  var archive: URL { Self.archive(of: one.store.path) }

  static func archive(of path: String) -> URL {
    URL(fileURLWithPath: path + LocalStore.archiveSuffix)
  }

  /// The numbers of all conflicts of the first device that can be read, the newest first.
  func numbers() throws -> [Int64] { try one.store.allConflicts().map(\.number) }
}

extension LocalStore {
  /// All conflicts that can be read, in small parts.
  func allConflicts() throws -> [Conflict] {
    var found: [Conflict] = []
    var next: Int64?
    repeat {
      let page = try conflicts(before: next, limit: 7)
      found += page.conflicts
      next = page.next
    } while next != nil
    return found
  }
}
