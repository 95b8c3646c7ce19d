import SyncDirectory
import SyncModel

/// The content of the files of one generation that could be read.
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
  /// What change sets build on, each with the first file that names it.
  var dependencies: [Dependency: RelativePath] = [:]

  init(_ layout: DirectoryLayout.Generation, ordinal: UInt64?, root: RootIdentifier?) {
    self.layout = layout
    self.ordinal = ordinal
    self.root = root
  }

  /// The clients that are retired, and have not come back.
  private(set) var gone: Set<ClientIdentifier> = []
  /// What is left of other clients, as far as markers record it.
  private var left: [ClientIdentifier: StoreRecords.Kept] = [:]
  /// The greatest numbers up to which retired clients are applied.
  private(set) var cuts: [ClientIdentifier: UInt64] = [:]
  /// What whole stores contain together.
  private var contained: [ClientIdentifier: UInt64] = [:]
  private var containedCommands: [ClientIdentifier: UInt64] = [:]

  /// Takes the newest markers, and works out once what follows from all of
  /// them, since it is asked for again and again.
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

  /// The last change set of a client, from its files, its marker, what others
  /// vacuumed of it, and the whole stores.
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

  /// The least number of a client's change sets that has to be there: from its
  /// marker, or from those of others if it is retired. If no marker names one,
  /// it is the number after the best whole store, or the least that is there,
  /// whichever is lower.
  func lowestKept(of client: ClientIdentifier) -> UInt64 {
    if let said = said(client, \.lowestKept, \.changeSets) { return max(said, 1) }
    let least = changes[client]?.claims.keys.min() ?? 1
    return min(least, contained(of: client) + 1)
  }

  /// The same for commands.
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

  /// Whether a file belongs here, by its header.
  func owns(root: RootIdentifier, document: DocumentName, generation: IntegrityKey) -> Bool {
    document == layout.document.name && generation == layout.key
      && (self.root.map { $0 == root } ?? true)
  }
}
