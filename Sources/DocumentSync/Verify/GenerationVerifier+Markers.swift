import SyncDirectory
import SyncModel

extension GenerationVerifier {
  /// The greatest weight of the markers that are compared: three times that of
  /// a synchronization.
  private static let greatestWeight = 300_000

  /// Reads the markers, and stores the newest of each client.
  func readMarkers(_ facts: inout GenerationFacts) throws {
    var markers = MarkersInMemory<ClientIdentifier>(greatestWeight: Self.greatestWeight)
    var newest: [ClientIdentifier: (revision: UInt64, path: RelativePath)] = [:]
    for (client, listed) in Dictionary(grouping: names.markers, by: \.client) {
      var hashes: [UInt64: ContentHash] = [:]
      var read: [(revision: UInt64, previous: ContentHash?)] = []
      let ordered = listed.sorted { ($0.revision, $0.description) < ($1.revision, $1.description) }
      for (index, name) in ordered.enumerated() {
        let path = facts.layout.path(of: name)
        if index > 0, ordered[index - 1].revision == name.revision {
          files.note(
            .markerClaimedTwice, path, "Two markers of one client have one revision.",
            detail: ordered[index - 1].description)
        }
        guard
          let whole = try files.json(path, name.hash, as: RecentSyncFile.self, .recentSync)
        else { continue }
        let marker = whole.content
        guard
          facts.owns(
            root: marker.root, document: marker.document, generation: marker.generation),
          marker.client == client, marker.revision == name.revision,
          marker.changeHead?.number ?? 0 == name.changeHead,
          marker.commandHead?.number ?? 0 == name.commandHead
        else {
          files.note(
            .misplaced, path, "The marker belongs to another document, client or revision.",
            detail: "client \(marker.client), revision \(marker.revision), heads "
              + "\(marker.changeHead?.number ?? 0) and \(marker.commandHead?.number ?? 0)")
          continue
        }
        hashes[name.revision] = whole.hash
        read.append((marker.revision, marker.previous))
        if newest[client].map({ $0.revision < marker.revision }) ?? true {
          newest[client] = (marker.revision, path)
          markers.add(marker, for: client)
        }
      }
      for marker in read {
        guard let before = hashes[marker.revision &- 1], marker.previous != before,
          let newest = newest[client], newest.revision == marker.revision
        else { continue }
        files.note(
          .markerDiffers, newest.path, "The marker does not continue the one before it.",
          detail: "it names \(marker.previous?.nameFragment ?? "none"), not \(before.nameFragment)")
      }
    }
    for client in Set(markers.leftOut).subtracting(markers.markers.keys).sorted() {
      let path = newest[client]?.path.description ?? ""
      files.leaveOut("\(path) was not compared with the files: there are too many long markers.")
    }
    facts.take(
      Dictionary(
        uniqueKeysWithValues: markers.markers.compactMap { client, file in
          newest[client].map { (client, GenerationFacts.Marker(path: $0.path, file: file)) }
        }))
  }

  /// Compares the newest markers with the files.
  func checkMarkers(_ facts: GenerationFacts) {
    var missingStores: Set<RelativePath> = []
    for (client, marker) in facts.markers.sorted(by: { $0.key < $1.key }) {
      checkHeads(of: client, marker, facts)
      check("change set", marker.file.applied, of: marker, facts.changes) { facts.head(of: $0) }
      check("command", marker.file.commandsApplied, of: marker, facts.commands) {
        facts.commandHead(of: $0)
      }
      for store in marker.file.wholeStores {
        let path = facts.layout.path(
          of: WholeStoreName(number: store.number, hash: HashFragment(store.hash)),
          by: store.client)
        guard isMissing(store, facts), missingStores.insert(path).inserted else { continue }
        files.note(
          .markerWholeStoreMissing, path, "A whole store that a marker lists is not there.",
          detail: "listed by \(marker.path.name)")
      }
    }
  }

  private func checkHeads(
    of client: ClientIdentifier, _ marker: GenerationFacts.Marker, _ facts: GenerationFacts
  ) {
    let found = facts.changes[client] ?? NumberedFacts()
    if let head = marker.file.changeHead {
      if found.differs(head.number, from: head.hash) {
        files.note(
          .markerDiffers, marker.path,
          "The marker names another content of change set \(head.number) than is there.",
          detail: "it names \(head.hash.nameFragment)")
      }
      checkIsThere(
        head.number, found, lowestKept: facts.lowestKept(of: client), "change set", marker,
        none: .markerWithoutFiles)
    }
    let commands = facts.commands[client] ?? NumberedFacts()
    if let head = marker.file.commandHead {
      if commands.differs(head.number, from: head.hash) {
        files.note(
          .markerDiffers, marker.path,
          "The marker names another content of command \(head.number) than is there.",
          detail: "it names \(head.hash.nameFragment)")
      }
      checkIsThere(
        head.number, commands, lowestKept: facts.lowestKeptCommand(of: client), "command", marker,
        none: .markerWithoutFiles)
    }
  }

  /// Checks that the files which a marker announces exist, except vacuumed
  /// ones. For a retired client, the markers of the members that vacuum its
  /// files record their numbers; some of the files may never have reached those
  /// members.
  private func checkIsThere(
    _ head: UInt64, _ found: NumberedFacts, lowestKept: UInt64, _ noun: String,
    _ marker: GenerationFacts.Marker, none: VerifyReport.Finding.Kind
  ) {
    guard head > found.greatest, head >= lowestKept,
      !found.inMissingSegments.contains(where: { $0.contains(head) })
    else { return }
    if found.claims.isEmpty {
      files.note(
        none, marker.path,
        "The marker announces \(noun)s up to \(head), and its client has none here.")
    } else {
      files.note(
        .markerAhead, marker.path,
        "The marker announces \(noun) \(head), and \(found.greatest) is the last that is there.")
    }
  }

  /// The most clients for which one marker gets a finding that it is beyond
  /// their files.
  private static let greatestBeyond = 20

  /// Checks the vector of change sets or commands in a marker.
  private func check(
    _ noun: String, _ said: VersionVector, of marker: GenerationFacts.Marker,
    _ found: [ClientIdentifier: NumberedFacts], head: (ClientIdentifier) -> UInt64
  ) {
    var beyond = 0
    for (other, entry) in said.sorted {
      if let found = found[other], found.differs(entry.number, from: entry.hash) {
        files.note(
          .markerDiffers, marker.path,
          "Its client has another content of \(noun) \(entry.number) of \(other) than is there.",
          detail: "it names \(entry.hash.nameFragment)")
      }
      let head = head(other)
      guard entry.number > head else { continue }
      beyond += 1
      guard beyond <= Self.greatestBeyond else { continue }
      files.note(
        .markerAppliedBeyond, marker.path,
        "Its client has \(noun) \(entry.number) of \(other), which has published none beyond "
          + "\(head).")
    }
    guard beyond > Self.greatestBeyond else { return }
    files.note(
      .markerAppliedBeyond, marker.path,
      "Its client has \(noun)s of \(beyond - Self.greatestBeyond) more clients, which have not "
        + "published them.")
  }

  /// Whether a listed whole store is missing and not superseded.
  private func isMissing(_ store: RecentSyncFile.WholeStore, _ facts: GenerationFacts) -> Bool {
    let name = WholeStoreName(number: store.number, hash: HashFragment(store.hash))
    if names.wholeStores[store.client]?.contains(name) ?? false { return false }
    return !facts.wholeStores.contains {
      $0.vector.contains(store.vector) && $0.commands.contains(store.commands)
    }
  }
}
