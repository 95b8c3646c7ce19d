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
    var commands: VersionVector
  }

  /// A change set that another one builds on.
  struct Dependency: Hashable {
    var client: ClientIdentifier
    var number: UInt64
    var hash: ContentHash
  }

  /// The generation, and where it is.
  let layout: DirectoryLayout.Generation
  /// Its ordinal; `nil` if its file is not there.
  let ordinal: UInt64?
  /// The shared directory that the headers of all files name; `nil` if that
  /// is not known.
  var root: RootIdentifier?
  private(set) var markers: [ClientIdentifier: Marker] = [:]
  var changes: [ClientIdentifier: NumberedFacts] = [:]
  var commands: [ClientIdentifier: NumberedFacts] = [:]
  private(set) var wholeStores: [WholeStore] = []
  /// What change sets build on, each with the first file that says so.
  var dependencies: [Dependency: RelativePath] = [:]

  init(_ layout: DirectoryLayout.Generation, ordinal: UInt64?, root: RootIdentifier?) {
    self.layout = layout
    self.ordinal = ordinal
    self.root = root
  }

  /// The clients that are retired, and have not come back.
  private(set) var gone: Set<ClientIdentifier> = []
  /// What markers say that is left of others.
  private var left: [ClientIdentifier: StoreRecords.Kept] = [:]
  /// The greatest numbers up to which others are applied that are retired.
  private(set) var cuts: [ClientIdentifier: UInt64] = [:]
  /// What whole stores contain together.
  private var contained: [ClientIdentifier: UInt64] = [:]
  private var containedCommands: [ClientIdentifier: UInt64] = [:]

  /// Takes the newest markers, once: what follows from all of them is asked for
  /// again and again.
  mutating func take(_ markers: [ClientIdentifier: Marker]) {
    self.markers = markers
    gone = RecentSyncFile.retired(by: markers.values.map(\.file), countsOwn: false)
    for retired in markers.values.flatMap(\.file.retired) {
      let before = left[retired.client]
      left[retired.client] = StoreRecords.Kept(
        changeSets: max(before?.changeSets ?? 0, retired.lowestKept),
        commands: max(before?.commands ?? 0, retired.lowestKeptCommand))
      if let cut = retired.cut { cuts[retired.client] = max(cuts[retired.client] ?? 0, cut) }
    }
  }

  /// Adds a whole store that was found whole.
  mutating func add(_ store: WholeStore) {
    wholeStores.append(store)
    for (client, entry) in store.vector.entries {
      contained[client] = max(contained[client] ?? 0, entry.number)
    }
    for (client, entry) in store.commands.entries {
      containedCommands[client] = max(containedCommands[client] ?? 0, entry.number)
    }
  }

  /// The last change set of a client, by its files, its marker, what others
  /// cleared away of it, and the whole stores.
  func head(of client: ClientIdentifier) -> UInt64 {
    max(
      changes[client]?.greatest ?? 0, markers[client]?.file.changeHead?.number ?? 0,
      contained(of: client), lowestKept(of: client) - 1)
  }

  /// The last command of a client, likewise.
  func commandHead(of client: ClientIdentifier) -> UInt64 {
    max(
      commands[client]?.greatest ?? 0, markers[client]?.file.commandHead?.number ?? 0,
      containedCommands[client] ?? 0,
      lowestKeptCommand(of: client) - 1)
  }

  /// The last change set of a client that is in a whole store.
  func contained(of client: ClientIdentifier) -> UInt64 {
    contained[client] ?? 0
  }

  /// The least number of a client's change sets that has to be there: by its
  /// marker, by those of others if it is retired, or, where none says so, what
  /// follows the best whole store or what is there.
  func lowestKept(of client: ClientIdentifier) -> UInt64 {
    if let said = said(client, \.lowestKept, \.changeSets) { return max(said, 1) }
    let least = changes[client]?.claims.keys.min() ?? 1
    return min(least, contained(of: client) + 1)
  }

  /// The same of commands.
  func lowestKeptCommand(of client: ClientIdentifier) -> UInt64 {
    if let said = said(client, \.lowestKeptCommand, \.commands) { return max(said, 1) }
    return commands[client]?.claims.keys.min() ?? 1
  }

  private func said(
    _ client: ClientIdentifier, _ own: KeyPath<RecentSyncFile, UInt64>,
    _ others: KeyPath<StoreRecords.Kept, UInt64>
  ) -> UInt64? {
    [markers[client]?.file[keyPath: own], left[client]?[keyPath: others]].compactMap(\.self).max()
  }

  /// Whether a file's header says that it belongs here.
  func owns(root: RootIdentifier, document: DocumentName, generation: IntegrityKey) -> Bool {
    document == layout.document.name && generation == layout.key
      && (self.root.map { $0 == root } ?? true)
  }
}
