import SyncDirectory
import SyncModel

/// A record of all files ever published in one history, with the hashes of their content.
final class FleetLedger: Sendable {
  private struct State {
    var numbers: [ClientIdentifier: Int] = [:]
    var hashes: [RelativePath: ContentHash] = [:]
    var files: [FleetFile: RelativePath] = [:]
    var changeSets: [FleetFile: SyncChangeSet] = [:]
    /// The files that their owners removed.
    var removed: Set<RelativePath> = []
    var publications = 0
    var violations: [String] = []
  }

  private let state = Locked(State())
  private let schema: FleetSchema

  /// - Parameter schema: The schema with all tables and columns that devices ever have.
  init(schema: FleetSchema) { self.schema = schema }

  /// Records to which device a client belongs.
  func register(_ client: ClientIdentifier, as device: Int) {
    state.withLock { $0.numbers[client] = device }
  }

  func device(of client: ClientIdentifier) -> Int? { state.withLock { $0.numbers[client] } }

  /// Records a publication, and a violation if it differs from an earlier one.
  func note(_ content: [UInt8], at path: RelativePath) throws {
    let hash = ContentHash(of: content)
    let file = file(at: path)
    let changeSet =
      file?.kind == .changeSet ? try ChangeSetCodec.decode(content).formless(schema) : nil
    state.withLock { state in
      state.publications += 1
      if let known = state.hashes[path], known != hash {
        state.violations.append("\(path) was published again with other content")
      }
      state.hashes[path] = hash
      guard let file else { return }
      if let known = state.files[file], known != path, file.kind == .changeSet {
        state.violations.append("two files claim to be \(file)")
      }
      state.files[file] = path
      if let changeSet { state.changeSets[file] = changeSet }
    }
  }

  /// Records that the owner of a file removed it.
  func noteRemoval(of path: RelativePath) {
    let file = file(at: path)
    state.withLock { state in
      state.removed.insert(path)
      if let file { state.files[file] = nil }
    }
  }

  /// Returns the change set or marker at a path; `nil` for other files.
  func file(at path: RelativePath) -> FleetFile? {
    guard let folder = path.parent else { return nil }
    if folder.name == "RecentSyncs", let name = MarkerName(path.name),
      let author = device(of: name.client)
    {
      return FleetFile(author: author, kind: .marker, number: name.revision)
    }
    if folder.parent?.name == "SyncChanges", let client = ClientIdentifier(folder.name),
      let author = device(of: client), let name = ChangeSetName(path.name)
    {
      return FleetFile(author: author, kind: .changeSet, number: name.number)
    }
    return nil
  }

  /// The published change sets and markers, in order.
  var files: [FleetFile] { state.withLock { $0.files.keys.sorted() } }

  func path(of file: FleetFile) -> RelativePath? { state.withLock { $0.files[file] } }

  func changeSet(_ number: UInt64, of device: Int) -> SyncChangeSet? {
    state.withLock {
      $0.changeSets[FleetFile(author: device, kind: .changeSet, number: number)]
    }
  }

  /// All published change sets, as the oracle compares them.
  var changeSets: [SyncChangeSet] {
    state.withLock { state in
      state.changeSets.sorted { $0.key < $1.key }.map(\.value)
    }
  }

  /// Counts the change sets and segments that were published, and the change sets that were removed.
  func count(into size: inout Fleet.Size) {
    state.withLock { state in
      size.changeSets = state.changeSets.count
      size.segments = state.hashes.keys.count { SegmentName($0.name) != nil }
      size.removedChangeSets = state.removed.count { ChangeSetName($0.name) != nil }
    }
  }

  /// The number of publications.
  var publications: Int { state.withLock { $0.publications } }

  /// Returns a sentence for each published file that has changed or is missing. Files that their
  /// owners have removed may be missing.
  func violations(in directory: MemoryDirectory) -> [String] {
    let items = directory.items
    return state.withLock { state in
      state.violations
        + state.hashes.sorted { $0.key < $1.key }.compactMap { path, hash in
          switch items[path] {
          case .file(let bytes):
            ContentHash(of: bytes) == hash ? nil : "the content of \(path) has changed"
          case nil where state.removed.contains(path): nil
          default: "\(path) is gone"
          }
        }
    }
  }
}

extension FleetLedger {
  /// Returns the head that a marker announces; `nil` for other files.
  static func head(of path: RelativePath) -> UInt64? { MarkerName(path.name)?.changeHead }
}
