import SyncDirectory
import SyncModel
import SyncStore

/// The files that a store has left in its former generations: each client
/// vacuums its own, once every member has moved to a later generation.
struct FormerLives: StoreSteps {
  let session: SyncSession

  // MARK: Leaving a generation

  /// Records that the store is about to leave its generation, and the members
  /// of that generation. A repeated call changes nothing.
  func noteLeaving() throws {
    let binding = store.binding
    let seen = try records.seenMarkers()
    let state = try CommandSteps(session: session).state()
    let members = try MemberSteps(session: session).members(
      seen, try records.readMarkers(), state, needs: [])
    let life = StoreRecords.FormerLife(
      document: binding.document, generation: binding.generation, client: binding.client,
      members: members.remaining.subtracting([binding.client]).sorted(),
      retired: members.retirements.keys.sorted(),
      clearing: Dictionary(
        uniqueKeysWithValues: members.retirements.compactMap { client, retirement in
          guard members.responsible(for: retirement) == binding.client else { return nil }
          return members.cuts[client]?.number.map { (client.description, $0) }
        }))
    let lives = try records.formerLives()
    let others = lives.filter { $0.generation != life.generation || $0.client != life.client }
    if others + [life] != lives { try records.keep(others + [life]) }
  }

  /// Returns the members of a former generation that have moved on with all
  /// that they had published, and have vacuumed it.
  func departed(from generation: IntegrityKey) throws -> Set<ClientIdentifier> {
    guard let life = try records.formerLives().first(where: { $0.generation == generation }) else {
      return []
    }
    let markers = try files.listIfPresent(
      DirectoryLayout.Document(life.document).generation(generation).recentSyncs,
      as: MarkerName.self
    ).map(\.client)
    let current = Set(try records.seenMarkers().keys).union([store.binding.client])
    return Self.arrived(current, Set(life.members), try ApplicationSteps(files).clients())
      .subtracting(markers)
  }

  // MARK: Vacuuming

  /// The files that a store has left in one generation.
  struct Leftovers {
    var life: StoreRecords.FormerLife
    /// The files, by kind and client.
    var files: [(files: VacuumReport.Files, paths: [RelativePath])] = []
    /// The folders of these files, inner ones first.
    var folders: [RelativePath] = []
    /// A member that has not moved, as far as this store knows.
    var missing: ClientIdentifier?
    /// Whether these are the last files of the store.
    var isLast = true
  }

  /// Returns the files that the store has left, by generation.
  ///
  /// - Parameter current: The present and former clients in the store's
  ///   generation.
  func leftovers(_ current: Set<ClientIdentifier>) throws -> [Leftovers] {
    // A generation is recorded before the store leaves it.
    let lives = try records.formerLives().filter { $0.generation != store.binding.generation }
    guard !lives.isEmpty else { return [] }
    let clients = try ApplicationSteps(files).clients()
    return try lives.map { life in
      let layout = DirectoryLayout.Document(life.document).generation(life.generation)
      let markers = try files.listIfPresent(layout.recentSyncs, as: MarkerName.self)
      var leftovers = Leftovers(life: life)
      let members = Set(life.members).union(markers.map(\.client)).subtracting(life.retired)
        .subtracting([life.client])
      leftovers.missing = members.subtracting(Self.arrived(current, members, clients)).min()
      let contained = try records.formerGenerations().first {
        $0.generation == life.generation
      }?.contained
      func last(_ client: String) -> UInt64? { contained.map { $0[client] ?? 0 } }
      try add(
        life.client, layout, markers.filter { $0.client == life.client },
        through: last(life.client.description) ?? .max, to: &leftovers)
      for (text, cut) in life.clearing.sorted(by: { $0.key < $1.key }) {
        guard let client = ClientIdentifier(text) else { continue }
        try add(
          client, layout, markers.filter { $0.client == client },
          through: last(text) ?? cut, to: &leftovers)
      }
      leftovers.folders += [
        layout.syncChanges, layout.syncCommands, layout.wholeStores, layout.recentSyncs,
        layout.folder,
      ]
      return leftovers
    }
  }

  /// Returns the members of a former generation that have moved on. From such a
  /// member descends a present or former client in the store's generation,
  /// without another member in between: the other one may be a copy. A member
  /// that has left or was removed is gone, too.
  static func arrived(
    _ current: Set<ClientIdentifier>, _ members: Set<ClientIdentifier>,
    _ clients: [ClientDescription]
  ) -> Set<ClientIdentifier> {
    let ancestors = Dictionary(
      clients.compactMap { client in client.ancestor.map { (client.client, $0) } },
      uniquingKeysWith: { first, _ in first })
    let gone = clients.filter { [.left, .removed].contains($0.status) }.map(\.client)
    var arrived: Set<ClientIdentifier> = []
    for client in current.union(gone) {
      var line: Set<ClientIdentifier> = []
      var next: ClientIdentifier? = client
      while let one = next, line.insert(one).inserted {
        guard !members.contains(one) else {
          arrived.insert(one)
          break
        }
        next = ancestors[one]
      }
    }
    return arrived
  }

  /// - Parameter last: The number up to which the present generation contains
  ///   all that the client has published.
  private func add(
    _ client: ClientIdentifier, _ layout: DirectoryLayout.Generation, _ markers: [MarkerName],
    through last: UInt64, to leftovers: inout Leftovers
  ) throws {
    func add(_ kind: VacuumReport.Files.Kind, _ found: [(ClosedRange<UInt64>, RelativePath)]) {
      guard let first = found.map(\.0.lowerBound).min(),
        let last = found.map(\.0.upperBound).max()
      else { return }
      leftovers.files.append(
        (
          VacuumReport.Files(
            kind: kind, client: client, first: first, last: last, count: found.count,
            reason: Self.reason), found.map(\.1)
        ))
    }
    let all = try files.listIfPresent(layout.syncChanges(of: client), as: ChangeFileName.self)
    let changes = all.filter { $0.numbers.upperBound <= last }
      .sorted { $0.numbers.lowerBound < $1.numbers.lowerBound }
    if changes.count < all.count { leftovers.isLast = false }
    for kind in [VacuumReport.Files.Kind.changeSets, .segments] {
      add(
        kind,
        changes.filter { name in
          if case .segment = name { kind == .segments } else { kind == .changeSets }
        }.map { ($0.numbers, layout.path(of: $0, by: client)) })
    }
    add(
      .commands,
      try files.listIfPresent(layout.syncCommands(of: client), as: CommandName.self).sorted()
        .map { ($0.number...$0.number, layout.path(of: $0, by: client)) })
    add(
      .wholeStores,
      try files.listIfPresent(layout.wholeStores(of: client), as: WholeStoreName.self).sorted()
        .map { ($0.number...$0.number, layout.path(of: $0, by: client)) })
    // The marker goes last, so that the client is visible while other files are
    // left.
    guard changes.count == all.count || client != leftovers.life.client else { return }
    add(.markers, markers.map { ($0.revision...$0.revision, layout.path(of: $0)) })
    leftovers.folders += [
      layout.syncChanges(of: client), layout.syncCommands(of: client),
      layout.wholeStores(of: client),
    ]
  }

  private static let reason = "all devices have moved to the new generation of the document"

  /// Removes the folders that are empty by now, and the record of the
  /// generation if nothing of this client is left in it.
  func finish(_ leftovers: Leftovers) throws {
    for folder in leftovers.folders {
      do {
        try files.removeIfEmpty(folder)
      } catch let error as DirectoryError {
        // An empty folder does no harm.
        files.context.environment.logger.debug("folder \(folder): \(error)")
      }
    }
    let lives = try records.formerLives()
    try records.keep(lives.filter { $0 != leftovers.life })
  }
}

extension Members {
  /// Returns the member that vacuums for a retired client: the author of the
  /// retirement, or the first member if the author is no member.
  func responsible(for retirement: CommandState.Retirement) -> ClientIdentifier? {
    remaining.contains(retirement.author) ? retirement.author : remaining.min()
  }
}

extension Housekeeping {
  /// Collects the files that this store has left in former generations and may
  /// remove.
  func clearFormerLives(_ findings: inout Findings) throws {
    let lives = FormerLives(session: session)
    let current = Set(listing.newest.keys).union(members.retirements.keys).union([client])
    for leftovers in try lives.leftovers(current) {
      guard let missing = leftovers.missing else {
        for (files, paths) in leftovers.files {
          findings.removals.append(Removal(files: files, paths: paths))
        }
        if leftovers.isLast { findings.formerLives.append(leftovers) }
        continue
      }
      for (files, _) in leftovers.files {
        var kept = files
        kept.reason = "it has not moved to the new generation of the document"
        kept.member = missing
        findings.report.kept.append(kept)
      }
    }
  }
}
