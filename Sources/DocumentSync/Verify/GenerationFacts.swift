import SyncDirectory
import SyncModel

/// The content of the readable files of one generation.
struct GenerationFacts {
  /// A client's newest marker that could be read.
  struct Marker {
    var path: RelativePath
    var file: RecentSyncFile
  }

  /// A whole store that was checked and is intact.
  struct WholeStore {
    var client: ClientIdentifier
    var number: UInt64
    var hash: ContentHash
    var path: RelativePath
    var vector: VersionVector
    var commands: VersionVector
  }

  /// A change set that another one depends on.
  struct Dependency: Hashable {
    var client: ClientIdentifier
    var number: UInt64
    var hash: ContentHash
  }

  /// The folders and the key of the generation.
  let layout: DirectoryLayout.Generation
  /// Its ordinal; `nil` if its file is missing.
  let ordinal: UInt64?
  /// The root that the headers of all files name; `nil` if unknown.
  var root: RootIdentifier?
  private(set) var markers: [ClientIdentifier: Marker] = [:]
  var changes: [ClientIdentifier: NumberedFacts] = [:]
  var commands: [ClientIdentifier: NumberedFacts] = [:]
  private(set) var wholeStores: [WholeStore] = []
  /// The change sets that others depend on, each with the first file that names
  /// it.
  var dependencies: [Dependency: RelativePath] = [:]

  init(_ layout: DirectoryLayout.Generation, ordinal: UInt64?, root: RootIdentifier?) {
    self.layout = layout
    self.ordinal = ordinal
    self.root = root
  }

  /// The retired clients that have not come back.
  private(set) var gone: Set<ClientIdentifier> = []
  /// The least numbers that markers of other clients record for retired ones.
  private var left: [ClientIdentifier: StoreRecords.Kept] = [:]
  /// By retired client, the greatest number up to which its change sets are
  /// applied.
  private(set) var cuts: [ClientIdentifier: UInt64] = [:]
  /// The change sets that the whole stores contain together.
  private var contained: [ClientIdentifier: UInt64] = [:]
  private var containedCommands: [ClientIdentifier: UInt64] = [:]

  /// Sets the newest markers, and computes once what the checks need from all
  /// of them.
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

  mutating func add(_ store: WholeStore) {
    wholeStores.append(store)
    for (client, entry) in store.vector.entries {
      contained[client] = max(contained[client] ?? 0, entry.number)
    }
    for (client, entry) in store.commands.entries {
      containedCommands[client] = max(containedCommands[client] ?? 0, entry.number)
    }
  }

  /// Returns the last change set of a client, from its files, its marker, the
  /// numbers that others vacuumed, and the whole stores.
  func head(of client: ClientIdentifier) -> UInt64 {
    max(
      changes[client]?.greatest ?? 0, markers[client]?.file.changeHead?.number ?? 0,
      contained(of: client), lowestKept(of: client) - 1)
  }

  /// Returns the last command of a client, from the same sources.
  func commandHead(of client: ClientIdentifier) -> UInt64 {
    max(
      commands[client]?.greatest ?? 0, markers[client]?.file.commandHead?.number ?? 0,
      containedCommands[client] ?? 0,
      lowestKeptCommand(of: client) - 1)
  }

  /// Returns the last change set of a client that a whole store contains.
  func contained(of client: ClientIdentifier) -> UInt64 {
    contained[client] ?? 0
  }

  /// Returns the least number of a client's change sets that has to exist: from
  /// its marker, or from those of others if it is retired. If no marker names
  /// one, returns the number after the best whole store, or the least existing
  /// number, whichever is lower.
  func lowestKept(of client: ClientIdentifier) -> UInt64 {
    if let said = said(client, \.lowestKept, \.changeSets) { return max(said, 1) }
    let least = changes[client]?.claims.keys.min() ?? 1
    return min(least, contained(of: client) + 1)
  }

  /// Returns the least number of a client's commands that has to exist, from
  /// markers.
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

  /// Whether a file with this header belongs to the generation.
  func owns(root: RootIdentifier, document: DocumentName, generation: IntegrityKey) -> Bool {
    document == layout.document.name && generation == layout.key
      && (self.root.map { $0 == root } ?? true)
  }
}
