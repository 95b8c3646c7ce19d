import SyncDirectory
import SyncModel

/// What was done in one history, and what was published.
final class LifeLedger: Sendable {
  /// An edit that SQLite accepted.
  struct Edit: Hashable, Sendable {
    /// What it concerns.
    enum Subject: Hashable, Sendable {
      /// A note that nobody but its lineage changes.
      case own(String)
      /// A note or an item that was inserted, by its token, and the note that it
      /// hangs on.
      case row(token: String, note: String)
      /// The shared column of a note.
      case shared(String)
      /// A note that was deleted.
      case deletion(String)
      /// The counter.
      case tally
    }

    var subject: Subject
    var token: String
    var amount: Int64 = 0
    /// Whether it is known to be in the shared directory.
    var isPublished = false
    /// Whether it may be lost, or not: see ``LifeDevice/unaware``.
    var isUncertain = false
    /// Whether it deletes a row that a copy of the store inserts: nothing tells
    /// the original that there is one. See “Open faults” in
    /// `Documentation/Reliability.md`.
    var isUnknownToCopy = false
  }

  private struct State {
    var edits: [Edit] = []
    var deletedNotes: Set<String> = []
    var hashes: [RelativePath: ContentHash] = [:]
    var claims: [String: RelativePath] = [:]
    /// The change sets that were published, as they were.
    var changeSets: [RelativePath: [UInt8]] = [:]
    var violations: [String] = []
    var isTallyUncertain = false
  }

  private let state = Locked(State())

  // MARK: Edits

  /// Notes an edit; gives its index.
  func note(_ edit: Edit) -> Int {
    state.withLock {
      $0.edits.append(edit)
      return $0.edits.count - 1
    }
  }

  func notePublished(_ indices: some Sequence<Int>) {
    state.withLock { state in for index in indices { state.edits[index].isPublished = true } }
  }

  /// Notes that nobody need have these.
  func noteUncertain(_ indices: some Sequence<Int>) {
    state.withLock { state in
      for index in indices {
        state.edits[index].isUncertain = true
        if state.edits[index].subject == .tally { state.isTallyUncertain = true }
      }
    }
  }

  func noteDeletion(ofNote id: String) { state.withLock { _ = $0.deletedNotes.insert(id) } }

  var edits: [Edit] { state.withLock { $0.edits } }
  var deletedNotes: Set<String> { state.withLock { $0.deletedNotes } }

  /// Whether an addition to the counter may count twice: it was made before
  /// a copy of the store, and sealed afterwards.
  var isTallyUncertain: Bool {
    get { state.withLock { $0.isTallyUncertain } }
    set { state.withLock { $0.isTallyUncertain = newValue } }
  }

  // MARK: Files

  /// Notes a publication, and whether it contradicts another.
  func note(_ content: [UInt8], at path: RelativePath) {
    let hash = ContentHash(of: content)
    state.withLock { state in
      if let known = state.hashes[path], known != hash {
        state.violations.append("\(path) was published again with other content")
      }
      state.hashes[path] = hash
      guard let folder = path.parent, folder.parent?.name == "SyncChanges",
        let name = ChangeSetName(path.name)
      else { return }
      state.changeSets[path] = content
      let claim = "\(folder)/\(name.number)"
      if let known = state.claims[claim], known != path {
        state.violations.append("\(known) and \(path) claim one number")
      }
      state.claims[claim] = path
    }
  }

  /// All change sets that were ever published.
  func changeSets() throws -> [SyncChangeSet] {
    try state.withLock { $0.changeSets }.sorted { $0.key < $1.key }.map {
      try ChangeSetCodec.decode($0.value)
    }
  }

  /// What contradicts I4, and the numbers that were used twice.
  func violations(in directory: MemoryDirectory) -> [String] {
    let items = directory.items
    return state.withLock { state in
      state.violations
        + state.hashes.sorted { $0.key < $1.key }.compactMap { path, hash in
          guard case .file(let bytes) = items[path], ContentHash(of: bytes) != hash else {
            return nil
          }
          return "the content of \(path) has changed"
        }
    }
  }
}
