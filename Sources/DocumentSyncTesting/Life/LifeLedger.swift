import SyncDirectory
import SyncModel

/// The edits and the published files of one history.
final class LifeLedger: Sendable {
  /// An edit that SQLite accepted.
  struct Edit: Hashable, Sendable {
    /// What an edit concerns.
    enum Subject: Hashable, Sendable {
      /// A note that only one lineage edits.
      case own(String)
      /// An inserted note or item, by its token, and the note to which it belongs.
      case row(token: String, note: String)
      /// The shared column of a note.
      case shared(String)
      /// A deleted note.
      case deletion(String)
      /// The counter.
      case tally
    }

    var subject: Subject
    var token: String
    var amount: Int64 = 0
    /// Whether the edit is known to be in the shared directory.
    var isPublished = false
    /// Whether the edit may be lost; see ``LifeDevice/unaware``.
    var isUncertain = false
    /// Whether the edit deletes a row whose insertion a copy or a backup of the store also has,
    /// without the store knowing of it. See “Open faults” in `Documentation/Reliability.md`.
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

  /// Records that a store knew, when it sealed these edits, that another state of it might have the
  /// edits before them.
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

  /// Whether the counter's value is uncertain, for example because an addition was made before the
  /// store was copied and sealed afterwards, so that it may count twice.
  var isTallyUncertain: Bool {
    get { state.withLock { $0.isTallyUncertain } }
    set { state.withLock { $0.isTallyUncertain = newValue } }
  }

  // MARK: Files

  /// Records a publication, and a violation if it contradicts an earlier one.
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

  /// Returns all change sets ever published.
  func changeSets() throws -> [SyncChangeSet] {
    try state.withLock { $0.changeSets }.sorted { $0.key < $1.key }.map {
      try ChangeSetCodec.decode($0.value)
    }
  }

  /// Returns the violations of I4: files with changed content, and numbers that were used twice.
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
