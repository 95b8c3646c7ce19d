import SyncDirectory
import SyncModel

/// Checks the files of one generation of a document, each by itself and against
/// the others.
struct GenerationVerifier {
  let files: VerifiedFiles
  let names: DirectoryInventory.Life
  /// The folder in which whole stores are unpacked.
  let scratch: String

  /// Reads all files, and notes the findings.
  ///
  /// - Parameter isCurrent: Whether the generation counts and was not deleted.
  ///   The files of other generations are being removed, or no device uses
  ///   them: so they are only checked by themselves.
  func run(_ facts: GenerationFacts, isCurrent: Bool) throws -> GenerationFacts {
    var facts = facts
    try readMarkers(&facts)
    try readCommands(&facts)
    try readChanges(&facts)
    try readWholeStores(&facts)
    for client in Array(facts.changes.keys) {
      let lowest = facts.lowestKept(of: client)
      facts.changes[client]?.lowestKept = lowest
    }
    for client in Array(facts.commands.keys) {
      let lowest = facts.lowestKeptCommand(of: client)
      facts.commands[client]?.lowestKept = lowest
    }
    guard isCurrent else { return facts }
    checkListedSegments(&facts)
    checkChanges(facts)
    checkCommands(facts)
    checkMarkers(facts)
    checkWholeStores(facts)
    return facts
  }

  // MARK: - Change sets

  private func readChanges(_ facts: inout GenerationFacts) throws {
    for (client, listed) in names.changes.sorted(by: { $0.key < $1.key }) {
      var found = NumberedFacts()
      for name in listed.sorted(by: { $0.numbers.lowerBound < $1.numbers.lowerBound }) {
        let path = facts.layout.path(of: name, by: client)
        switch name {
        case .changeSet(let name):
          let claim = try read(name, at: path, by: client, &facts)
          found.claims[name.number, default: []].append(claim)
        case .segment(let name):
          for (number, claim) in try read(name, at: path, by: client, &facts) {
            found.claims[number, default: []].append(claim)
          }
        }
      }
      facts.changes[client] = found
    }
  }

  private func read(
    _ name: ChangeSetName, at path: RelativePath, by client: ClientIdentifier,
    _ facts: inout GenerationFacts
  ) throws -> NumberedFacts.Claim {
    let whole = try files.read(path, name.hash, limits: .default) { try ChangeSetCodec.decode($0) }
    guard let whole else { return NumberedFacts.Claim(path: path) }
    return note(
      whole.content, hash: whole.hash, as: name.number, at: path, by: client, &facts)
  }

  /// Notes the content of a change set. If it belongs elsewhere, it only claims
  /// its number.
  func note(
    _ changeSet: SyncChangeSet, hash: ContentHash, as number: UInt64, at path: RelativePath,
    by client: ClientIdentifier, _ facts: inout GenerationFacts
  ) -> NumberedFacts.Claim {
    let header = changeSet.header
    guard
      facts.owns(root: header.root, document: header.document, generation: header.generation),
      header.client == client, header.number == number
    else {
      files.note(
        .misplaced, path, "The change set belongs to another document, client or number.",
        detail: "root \(header.root), document \(header.document), generation "
          + "\(header.generation), client \(header.client), number \(header.number)")
      return NumberedFacts.Claim(path: path)
    }
    if number == 1, let previous = header.previous,
      !changeSet.dependencies.entries.contains(where: { $0.value.hash == previous })
    {
      files.note(
        .chainBroken, path,
        "Change set 1 does not continue a change set of its ancestor that it builds on.",
        detail: "it names \(previous.nameFragment)")
    }
    for (other, entry) in changeSet.dependencies.entries {
      let dependency = GenerationFacts.Dependency(
        client: other, number: entry.number, hash: entry.hash)
      if facts.dependencies[dependency] == nil { facts.dependencies[dependency] = path }
    }
    return NumberedFacts.Claim(path: path, hash: hash, previous: header.previous)
  }

  private func checkChanges(_ facts: GenerationFacts) {
    let layout = facts.layout
    for (client, found) in facts.changes {
      NumberedRules(
        kinds: .changeSets, client: client, facts: found,
        folder: layout.syncChanges(of: client),
        path: { number, hash in
          layout.path(
            of: ChangeSetName(number: number, hash: HashFragment(hash)), by: client)
        }
      ).run(files)
      guard facts.markers[client] != nil else { continue }
      for number in found.numbers where number < found.lowestKept {
        for claim in found.claims[number] ?? [] where !claim.isInSegment {
          files.note(
            .changeSetNotCleared, claim.path,
            "Change set \(number) is still there, although it was given up.",
            detail: "the least that is kept is \(found.lowestKept)")
        }
      }
    }
    checkSegments(facts)
    for (dependency, path) in facts.dependencies { check(dependency, of: path, facts) }
  }

  private func check(
    _ dependency: GenerationFacts.Dependency, of path: RelativePath, _ facts: GenerationFacts
  ) {
    let found = facts.changes[dependency.client] ?? NumberedFacts()
    let what = "change set \(dependency.number) of \(dependency.client)"
    if found.differs(dependency.number, from: dependency.hash) {
      files.note(
        .dependencyDiffers, path, "It builds on another content of \(what) than is there.",
        detail: "it names \(dependency.hash.nameFragment)")
    }
    guard dependency.number > facts.head(of: dependency.client) else {
      // The change set exists, was vacuumed, or has a finding as missing.
      return
    }
    files.note(
      .dependencyMissing, path, "It builds on \(what), which is missing.",
      detail: "the last one known is \(facts.head(of: dependency.client))")
  }
}
