import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Reads the others' RecentSync markers, and publishes the own one.
struct MarkerSteps: StoreSteps {
  /// The names of the markers.
  struct Listing {
    /// The own markers.
    var own: [MarkerName] = []
    /// The newest one of every other client.
    var newest: [ClientIdentifier: MarkerName] = [:]
    /// The older ones of every other client.
    var older: [ClientIdentifier: [MarkerName]] = [:]

    init(_ names: [MarkerName], own client: ClientIdentifier) {
      for name in names {
        if name.client == client {
          own.append(name)
        } else if let known = newest[name.client], known.revision >= name.revision {
          older[name.client, default: []].append(name)
        } else if let known = newest.updateValue(name, forKey: name.client) {
          older[name.client, default: []].append(known)
        }
      }
    }
  }

  let session: SyncSession

  /// The most members that a marker names: forged file names can claim any
  /// number.
  private static let greatestMembers = 10_000

  /// Lists the markers. Throws ``Fork`` if they show more of this client than
  /// the store knows: then another state of the store is in use.
  func list() throws -> Listing {
    let listing = Listing(
      try files.listIfPresent(layout.recentSyncs, as: MarkerName.self), own: binding.client)
    try checkFork(listing.own)
    return listing
  }

  /// Returns the newest markers of the others that were seen, now or before;
  /// records the new ones.
  ///
  /// - Parameter onNewClient: Called if there is one of a client that has not
  ///   been seen before.
  func seen(
    _ listing: Listing, onNewClient: () throws -> Void = {}
  ) throws -> [ClientIdentifier: StoreRecords.SeenMarker] {
    let before = try records.seenMarkers()
    var seen = before
    for (client, name) in listing.newest {
      let known = seen[client]
      // This listing may be older than an earlier one.
      guard name.revision > known?.revision ?? 0 else { continue }
      seen[client] = StoreRecords.SeenMarker(
        revision: name.revision, changeHead: max(name.changeHead, known?.changeHead ?? 0),
        commandHead: max(name.commandHead, known?.commandHead ?? 0))
    }
    if seen.count > before.count { try onNewClient() }
    if seen != before { try records.keep(seen) }
    return seen
  }

  /// The content of this store's marker that is not in its records.
  struct Statement {
    var changeHead: VersionVector.Entry?
    var applied: VersionVector
    var commands: VersionVector
    var retired: [RecentSyncFile.Retired] = []
    var waiting: [SyncReport.Wait] = []
    /// The waits that have lasted: the authors are to restore the files.
    var awaited: Set<StoreRecords.Awaited> = []
  }

  /// Publishes a new marker if this store has something to announce, or the
  /// last one again if it is missing. Returns whether there was a new one.
  ///
  /// Acknowledgements by others never trigger a marker; otherwise devices would
  /// acknowledge one another for ever. A wait for files triggers one if it
  /// lasts: the authors read the marker, and restore the files.
  ///
  /// - Parameter isForced: Whether to publish a new one in any case, to show
  ///   that this client is there.
  func publishIfNeeded(
    _ listing: Listing, _ statement: Statement, isForced: Bool = false
  ) throws -> Bool {
    let last = try records.ownMarker()
    let wholeStores = try records.wholeStores()
    let segments = try records.segments()
    let kept = try records.kept()
    var waits = try records.waits()
    if !isForced, waits.said == statement.awaited, let content = last?.content, let last,
      content.changeHead == statement.changeHead,
      content.applied == statement.applied, content.commandsApplied == statement.commands,
      content.wholeStores == wholeStores, content.segments == segments,
      content.lowestKept == kept.changeSets, content.lowestKeptCommand == kept.commands,
      content.retired == statement.retired
    {
      try republish(last, unlessIn: listing.own)
      return false
    }
    let revision = MarkerName.revision(
      after: last?.content.revision ?? 0, saysWaiting: !statement.awaited.isEmpty)
    let commandHead = statement.commands[binding.client]
    let content = RecentSyncFile(
      root: binding.root, document: binding.document, generation: binding.generation,
      client: binding.client, revision: revision,
      previous: last.map { ContentHash(of: $0.bytes) }, changeHead: statement.changeHead,
      commandHead: commandHead, applied: statement.applied, commandsApplied: statement.commands,
      members: Array(
        Set(listing.newest.keys).union([binding.client]).sorted().prefix(Self.greatestMembers)),
      wholeStores: wholeStores, segments: segments, lowestKept: kept.changeSets,
      lowestKeptCommand: kept.commands, retired: statement.retired, waiting: statement.waiting,
      milliseconds: context.environment.now())
    let bytes = try Envelope.encodeJSON(content, type: .recentSync)
    let name = MarkerName(
      client: binding.client, changeHead: statement.changeHead?.number ?? 0,
      commandHead: commandHead?.number ?? 0, revision: revision,
      hash: HashFragment(ContentHash(of: bytes)))
    try records.keep(
      StoreRecords.OwnMarker(name: name.description, bytes: Data(bytes), content: content))
    try files.publishReplacingDamaged(bytes, at: layout.path(of: name), by: binding.client)
    if waits.said != statement.awaited {
      waits.said = statement.awaited
      try records.keep(waits)
    }
    try removeOld(listing.own, before: last?.content.revision ?? 0)
    return true
  }

  /// Publishes the last marker again if the file in the directory has another
  /// length.
  func mendOwn() throws {
    guard let last = try records.ownMarker(), let path = try ownPath(),
      let length = try files.measure(path), length != last.bytes.count
    else { return }
    try files.publishReplacingDamaged(Array(last.bytes), at: path, by: binding.client)
  }

  func ownPath() throws -> RelativePath? {
    try records.ownMarker().flatMap { MarkerName($0.name) }.map { layout.path(of: $0) }
  }

  /// Returns the states of the members of a document, by their newest markers.
  static func states(
    _ files: SharedFiles, layout: DirectoryLayout.Generation
  ) throws -> [ClientIdentifier: ClientDescription.State] {
    states(of: try newest(files, layout: layout))
  }

  /// Returns the states of the members with these markers.
  static func states(
    of markers: [(name: MarkerName, file: RecentSyncFile?)]
  ) -> [ClientIdentifier: ClientDescription.State] {
    let heads = markers.map { ($0.name.client, $0.name.changeHead) }.sorted { $0.0 < $1.0 }
    var states: [ClientIdentifier: ClientDescription.State] = [:]
    for (name, file) in markers {
      var state = ClientDescription.State(
        revision: name.revision, changeHead: name.changeHead, applied: file?.applied,
        milliseconds: file?.milliseconds)
      state.lacking = file.map { file in
        heads.compactMap { other, head in
          let number = file.applied.number(of: other)
          guard other != name.client, number < head else { return nil }
          return ClientDescription.Lack(client: other, first: number + 1, last: head)
        }
      }
      states[name.client] = state
    }
    return states
  }

  /// Reads the newest marker of each client in a generation; the file is `nil`
  /// if it cannot be read.
  static func newest(
    _ files: SharedFiles, layout: DirectoryLayout.Generation
  ) throws -> [(name: MarkerName, file: RecentSyncFile?)] {
    let names = try files.listIfPresent(layout.recentSyncs, as: MarkerName.self)
    let newest = Dictionary(grouping: names, by: \.client).compactMap {
      $0.value.max { $0.revision < $1.revision }
    }
    return try newest.map { name in
      do {
        return (name, try files.read(layout.path(of: name), as: RecentSyncFile.self, .recentSync))
      } catch let error where error.concernsOneFile {
        files.context.environment.logger.notice("marker \(name): \(error)")
        return (name, nil)
      } catch let error as SyncError where error.code == .newerVersionNeeded {
        // The name alone shows that the client is there.
        files.context.environment.logger.notice("marker \(name): \(error)")
        return (name, nil)
      }
    }
  }

  private func republish(_ last: StoreRecords.OwnMarker, unlessIn own: [MarkerName]) throws {
    guard let name = MarkerName(last.name), !own.contains(name) else { return }
    try files.publishReplacingDamaged(
      Array(last.bytes), at: layout.path(of: name), by: binding.client)
  }

  private func removeOld(_ own: [MarkerName], before revision: UInt64) throws {
    for name in own where name.revision < revision {
      do {
        try files.remove(layout.path(of: name))
      } catch let error as DirectoryError {
        // An old marker does no harm; the next one tries again.
        context.environment.logger.notice("old marker \(name): \(error)")
      }
    }
  }

  private func checkFork(_ own: [MarkerName]) throws {
    guard !own.isEmpty else { return }
    let last = try records.ownMarker()
    let revision = last?.content.revision ?? 0
    guard
      let other = own.first(where: {
        $0.revision > revision || ($0.revision == revision && $0.description != last?.name)
      })
    else { return }
    throw Fork(
      path: layout.path(of: other),
      detail: "own marker of revision \(other.revision); the store knows \(revision)")
  }
}

/// The directory contains more of this client than its store: the store is an
/// older state of itself, or another state of it is in use.
struct Fork: Error {
  /// The file that shows it.
  var path: RelativePath
  /// The details of what the file shows.
  var detail: String
}
