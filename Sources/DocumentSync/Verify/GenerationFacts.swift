import SyncDirectory
import SyncModel

/// What the files of one generation say that could be read.
struct GenerationFacts {
  /// The newest marker of a client that could be read.
  struct Marker {
    var path: RelativePath
    var file: RecentSyncFile
  }

  /// A whole store that was found whole.
  struct WholeStore {
    var client: ClientIdentifier
    var number: UInt64
    var hash: ContentHash
    var path: RelativePath
    var vector: VersionVector
  }

  /// A change set that another one builds on.
  struct Dependency: Hashable {
    var client: ClientIdentifier
    var number: UInt64
    var hash: ContentHash
  }

  /// The generation, and where it is.
  let layout: DirectoryLayout.Generation
  /// The shared directory that the headers of all files name; `nil` if that
  /// is not known.
  var root: RootIdentifier?
  var markers: [ClientIdentifier: Marker] = [:]
  var changes: [ClientIdentifier: NumberedFacts] = [:]
  var commands: [ClientIdentifier: NumberedFacts] = [:]
  var wholeStores: [WholeStore] = []
  /// What change sets build on, each with the first file that says so.
  var dependencies: [Dependency: RelativePath] = [:]

  init(_ layout: DirectoryLayout.Generation, root: RootIdentifier?) {
    self.layout = layout
    self.root = root
  }

  /// The last change set of a client, by its files, its marker, and the whole
  /// stores.
  func head(of client: ClientIdentifier) -> UInt64 {
    max(
      changes[client]?.greatest ?? 0, markers[client]?.file.changeHead?.number ?? 0,
      contained(of: client))
  }

  /// The last change set of a client that is in a whole store.
  func contained(of client: ClientIdentifier) -> UInt64 {
    wholeStores.map { $0.vector.number(of: client) }.max() ?? 0
  }

  /// The least number of a client that has to be there as a file, unless its
  /// marker says otherwise: what follows the best whole store, and what
  /// follows what is there.
  func lowestKept(of client: ClientIdentifier) -> UInt64 {
    if let marker = markers[client] { return marker.file.lowestKept }
    let least = changes[client]?.claims.keys.min() ?? 1
    return min(least, contained(of: client) + 1)
  }

  /// Whether a file's header says that it belongs here.
  func owns(root: RootIdentifier, document: DocumentName, generation: IntegrityKey) -> Bool {
    document == layout.document.name && generation == layout.key
      && (self.root.map { $0 == root } ?? true)
  }
}
