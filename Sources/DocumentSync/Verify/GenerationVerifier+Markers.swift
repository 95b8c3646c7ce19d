import SyncDirectory
import SyncModel

extension GenerationVerifier {
  /// Reads the markers, and notes the newest of each client.
  func readMarkers(_ facts: inout GenerationFacts) throws {
    for (client, listed) in Dictionary(grouping: names.markers, by: \.client) {
      var hashes: [UInt64: ContentHash] = [:]
      var read: [RecentSyncFile] = []
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
        read.append(marker)
        if facts.markers[client].map({ $0.file.revision < marker.revision }) ?? true {
          facts.markers[client] = GenerationFacts.Marker(path: path, file: marker)
        }
      }
      for marker in read {
        guard let before = hashes[marker.revision &- 1], marker.previous != before,
          let newest = facts.markers[client], newest.file.revision == marker.revision
        else { continue }
        files.note(
          .markerDiffers, newest.path, "The marker does not continue the one before it.",
          detail: "it names \(marker.previous?.nameFragment ?? "none"), not \(before.nameFragment)")
      }
    }
  }

  /// Compares the newest markers with what is there.
  func checkMarkers(_ facts: GenerationFacts) {
    var missingStores: Set<RelativePath> = []
    for (client, marker) in facts.markers.sorted(by: { $0.key < $1.key }) {
      checkHeads(of: client, marker, facts)
      for (other, entry) in marker.file.applied.entries {
        check(
          "change set", entry, of: other, marker, facts.changes[other], head: facts.head(of: other))
      }
      for (other, entry) in marker.file.commandsApplied.entries {
        check(
          "command", entry, of: other, marker, facts.commands[other],
          head: facts.commandHead(of: other))
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

  /// What was given up need not be there: of a client that is retired those
  /// say so who clear it away, to whom some of it may never have come.
  private func checkIsThere(
    _ head: UInt64, _ found: NumberedFacts, lowestKept: UInt64, _ noun: String,
    _ marker: GenerationFacts.Marker, none: VerifyFinding.Kind
  ) {
    guard head > found.greatest, head >= lowestKept,
      !found.inMissingSegments.contains(where: { $0.contains(head) })
    else { return }
    if found.claims.isEmpty {
      files.note(
        none, marker.path,
        "The marker announces \(noun)s up to \(head), and none of its client is there.")
    } else {
      files.note(
        .markerAhead, marker.path,
        "The marker announces \(noun) \(head), and \(found.greatest) is the last that is there.")
    }
  }

  /// Checks what a marker says that its client has applied or processed.
  private func check(
    _ noun: String, _ entry: VersionVector.Entry, of other: ClientIdentifier,
    _ marker: GenerationFacts.Marker, _ found: NumberedFacts?, head: UInt64
  ) {
    if let found, found.differs(entry.number, from: entry.hash) {
      files.note(
        .markerDiffers, marker.path,
        "Its client has another content of \(noun) \(entry.number) of \(other) than is there.",
        detail: "it names \(entry.hash.nameFragment)")
    }
    guard entry.number > head else { return }
    files.note(
      .markerAppliedBeyond, marker.path,
      "Its client has \(noun) \(entry.number) of \(other), which has published none beyond "
        + "\(head).")
  }

  /// Whether a listed whole store is neither there nor superseded.
  private func isMissing(_ store: RecentSyncFile.WholeStore, _ facts: GenerationFacts) -> Bool {
    let name = WholeStoreName(number: store.number, hash: HashFragment(store.hash))
    if names.wholeStores[store.client]?.contains(name) ?? false { return false }
    return !facts.wholeStores.contains {
      $0.vector.contains(store.vector) && $0.commands.contains(store.commands)
    }
  }
}
