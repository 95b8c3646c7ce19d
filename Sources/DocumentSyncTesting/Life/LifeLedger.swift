import SyncDirectory
import SyncModel

/// The edits of one history, and the published files.
final class LifeLedger: Sendable {
  /// An edit that SQLite accepted.
  struct Edit: Hashable, Sendable {
    /// The rows that an edit concerns.
    enum Subject: Hashable, Sendable {
      /// A note that only its lineage changes.
      case own(String)
      /// A note or an item that was inserted, by its token, and the note to which
      /// it belongs.
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
    /// Whether it is allowed to be lost: see ``LifeDevice/unaware``.
    var isUncertain = false
    /// Whether it deletes a row that a copy or a backup of the store inserts: the original does
    /// not know that there is one. See “Open faults” in
    /// `Documentation/Reliability.md`.
    var isUnknownToCopy = false
  }

  private struct State {
    var edits: [Edit] = []
    var deletedNotes: Set<String> = []
    var hashes: [RelativePath: ContentHash] = [:]
    var claims: [String: RelativePath] = [:]
    /// The content of the published change sets.
    var changeSets: [RelativePath: [UInt8]] = [:]
    var violations: [String] = []
    var isTallyUncertain = false
  }

  private let state = Locked(State())

  // MARK: Edits

  /// Records an edit; returns its index.
  func note(_ edit: Edit) -> Int {
    state.withLock {
      $0.edits.append(edit)
      return $0.edits.count - 1
    }
  }

  func notePublished(_ indices: some Sequence<Int>) {
    state.withLock { state in for index in indices { state.edits[index].isPublished = true } }
  }

  /// Records that a store knew, when it sealed these edits, that another state of it might have
  /// those before them.
  func noteKnownToCopy(_ indices: some Sequence<Int>) {
    state.withLock { state in
      for index in indices where !state.edits[index].isPublished {
        state.edits[index].isUnknownToCopy = false
      }
    }
  }

  /// Records that these edits may be lost.
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

  /// Whether an addition to the counter may count twice, since it was made before
  /// the store was copied, and sealed afterwards.
  var isTallyUncertain: Bool {
    get { state.withLock { $0.isTallyUncertain } }
    set { state.withLock { $0.isTallyUncertain = newValue } }
  }

  // MARK: Files

  /// Records a publication, and whether it contradicts another one.
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

  /// The violations of I4, and the numbers that were used twice.
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
