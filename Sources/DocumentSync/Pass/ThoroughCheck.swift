import SyncDirectory
import SyncModel
import SyncStore

/// Checks byte for byte the files of this client in the shared directory other
/// than its change sets, and restores missing and damaged ones.
///
/// It reads all of them, so it runs only if a person asks for it. Files of a
/// newer version stay as they are.
struct ThoroughCheck: StoreSteps {
  /// Own files that were found missing or damaged.
  struct Damage {
    /// Whether a new marker has to replace the last one.
    var needsMarker = false
    /// The files to remove once their replacements are there.
    var removals: [RelativePath] = []
    /// The files that were written as replacements.
    var restored: [RelativePath] = []
    /// The files that stay damaged until they can be replaced.
    var remaining: [RelativePath] = []
    /// The change sets that cannot be restored, since the store no longer has
    /// their bytes.
    var lost: [SealedChangeSet] = []
  }

  let session: SyncSession

  // MARK: Files that every member can restore

  /// Writes the application's file and that of the store's generation again if
  /// they are missing or cannot be decoded. Returns those that it wrote.
  ///
  /// It does so only if a marker shows that this is the store's directory, the
  /// directory has no other application's file instead, and the generation was
  /// neither deleted nor replaced. The new file lacks what only the author of
  /// the lost one knew: descriptions and notes, the creator and the time; it
  /// names this client and this moment.
  func restoreBeginning() throws -> [RelativePath] {
    let roots = try files.list(.root, as: RootName.self).compactMap { name in
      if case .application(let name) = name { name.root } else { nil }
    }
    let listing = DocumentSteps.Listing(
      try files.listIfPresent(layout.document.folder, as: DocumentEntryName.self))
    let name = GenerationName(
      ordinal: UInt64(binding.generationOrdinal), key: binding.generation)
    guard try !files.listIfPresent(layout.recentSyncs, as: MarkerName.self).isEmpty,
      roots.isEmpty || roots.contains(binding.root),
      // A generation that was deleted or replaced is not missed.
      !listing.isDeleted(name.ordinal), listing.counting.map({ $0 <= name }) ?? true
    else { return [] }
    context.begin(.verifying, count: 2)
    var restored: [RelativePath] = []
    let application = DirectoryLayout.path(of: ApplicationName(root: binding.root))
    if try isLost(application, as: ApplicationFile.self, .application) {
      try replace(
        application, .application,
        by: ApplicationFile(
          application: binding.application, root: binding.root, creator: binding.client,
          createdMilliseconds: context.environment.now()))
      restored.append(application)
    }
    context.report { $0.completedCount = 1 }
    if let generation = try restore(name, listing) { restored.append(generation) }
    context.endPhase()
    return restored
  }

  private func restore(
    _ name: GenerationName, _ listing: DocumentSteps.Listing
  ) throws -> RelativePath? {
    let path = layout.document.path(of: name)
    guard try isLost(path, as: GenerationFile.self, .generation) else { return nil }
    let previous = listing.generations.filter { $0.ordinal < name.ordinal }.max()
    // If the file of the generation before is lost as well, or has not arrived,
    // the chain of generations would end here, and stores of earlier
    // generations would count as strangers.
    guard
      name.ordinal == 1 || previous?.ordinal == name.ordinal - 1
        || listing.isDeleted(name.ordinal - 1)
    else {
      context.environment.logger.notice("\(path): the generation before it is not there")
      return nil
    }
    var file = GenerationFile(of: binding)
    file.description = binding.documentIdentifier
    file.previous = previous?.key
    file.createdMilliseconds = context.environment.now()
    try replace(path, .generation, by: file)
    return path
  }

  private func replace(
    _ path: RelativePath, _ type: Envelope.FileType, by value: some Encodable
  ) throws {
    context.environment.logger.notice("writing \(path) again")
    try files.publishReplacingDamaged(
      try Envelope.encodeJSON(value, type: type), at: path, by: binding.client)
  }

  // MARK: Own files

  /// The own commands in the directory whose bytes are as published.
  func intactCommands() throws -> [CommandName] {
    try CommandSteps(session: session).listOwn().filter {
      try !isDamaged(layout.path(of: $0, by: binding.client), $0.hash)
    }
  }

  /// Publishes the description of this client again if it is lost, and removes
  /// its damaged descriptions.
  func checkDescription() throws -> [RelativePath] {
    let names = try files.listIfPresent(
      DirectoryLayout.clientDevices, as: ClientEntryName.self
    ).compactMap { entry -> ClientDeviceName? in
      if case .device(let name) = entry, name.client == binding.client { name } else { nil }
    }.sorted { $0.revision < $1.revision }
    let damaged = try names.filter {
      try isLost(DirectoryLayout.path(of: $0), as: ClientFile.self, .clientDevice)
    }
    var restored: [RelativePath] = []
    if names.last.map(damaged.contains) ?? true {
      try ApplicationSteps(files).describe(
        binding.client, as: binding.clientDescription, ancestor: binding.ancestor,
        document: binding.document)
      restored.append(
        DirectoryLayout.path(
          of: ClientDeviceName(
            client: binding.client, revision: (names.last?.revision ?? 0) + 1)))
    }
    for name in damaged { try files.remove(DirectoryLayout.path(of: name)) }
    return restored
  }

  /// Checks the own markers of a listing.
  func checkMarkers(_ listing: MarkerSteps.Listing, _ damage: inout Damage) throws {
    let damaged = try listing.own.filter { try isDamaged(layout.path(of: $0), $0.hash) }
    damage.removals += damaged.map { layout.path(of: $0) }
    guard let last = try records.ownMarker().flatMap({ MarkerName($0.name) }) else {
      return
    }
    damage.needsMarker = damaged.contains(last) || !listing.own.contains(last)
  }

  /// Whether the length of an own whole store in the directory differs from the
  /// published one.
  func hasShortWholeStore() throws -> Bool {
    try records.wholeStores().contains { made in
      guard made.client == binding.client,
        let length = try files.measure(layout.path(of: made.name, by: binding.client))
      else { return false }
      return length != made.byteCount
    }
  }

  /// Reads the own whole stores, and uploads a new one if a damaged or missing
  /// one contains changes that no other does, or if the generation has none, as
  /// in a directory that was put back to a state before it.
  ///
  /// A damaged one stays while new edits prevent the upload of a new one.
  func checkWholeStores(
    _ listing: MarkerSteps.Listing, _ damage: inout Damage
  ) throws {
    var there: [ClientIdentifier: [WholeStoreName]] = [:]
    for client in try files.listIfPresent(layout.wholeStores, as: ClientIdentifier.self) {
      there[client] = try files.listIfPresent(
        layout.wholeStores(of: client), as: WholeStoreName.self)
    }
    let damaged = try there[binding.client, default: []].filter(isDamaged)
    there[binding.client]?.removeAll { damaged.contains($0) }
    let said =
      try records.wholeStores()
      + KnownMarkers(session: session).update(listing).values.flatMap(\.wholeStores)
    let listed = said.filter { there[$0.client, default: []].contains($0.name) }
    let own = try records.wholeStores().filter { $0.client == binding.client }
    let missing = own.filter {
      !there[binding.client, default: []].contains($0.name) && !damaged.contains($0.name)
    }
    let counts =
      there.values.allSatisfy(\.isEmpty)
      || missing.contains { lost in !listed.contains { $0.supersedes(lost) } }
      || damaged.contains { name in
        said.first { $0.client == binding.client && $0.name == name }.map { lost in
          !listed.contains { $0.supersedes(lost) }
        } ?? !there[binding.client, default: []].contains { $0.number > name.number }
      }
    if counts {
      guard let uploaded = try WholeStoreSteps(files).uploadIfPossible(in: session) else {
        damage.remaining += damaged.map { layout.path(of: $0, by: binding.client) }
        return
      }
      damage.restored.append(
        layout.path(
          of: WholeStoreName(number: uploaded.number, hash: HashFragment(uploaded.hash)),
          by: binding.client))
    }
    let lost = damaged + missing.map(\.name)
    guard !lost.isEmpty else { return }
    try records.keep(
      try records.wholeStores().filter {
        $0.client != binding.client || !lost.contains($0.name)
      })
    damage.removals += damaged.map { layout.path(of: $0, by: binding.client) }
  }

  // MARK: Checking

  private func isDamaged(_ name: WholeStoreName) throws -> Bool {
    let siblings = LocalSiblings(store: store.path, operation: context.verb)
    try siblings.removeAll()
    let file = siblings.temporary("check")
    let path = layout.path(of: name, by: binding.client)
    defer {
      // A damaged file is not read to its end.
      context.endPhase()
      do {
        try siblings.removeAll()
      } catch {
        // The next synchronization removes it, or reports the error.
        context.environment.logger.notice("\(error)")
      }
    }
    do {
      try files.download(path, to: file, limit: 1 << 40)
      return !name.hash.matches(try WholeStoreFile(context).check(file).hash)
    } catch let error as CodecError {
      context.environment.logger.notice("whole store \(path): \(error)")
      return !error.needsNewerReader
    } catch let error as DirectoryError where error.concernsOneFile {
      context.environment.logger.notice("whole store \(path): \(error)")
      return error.code == .damaged
    }
  }

  /// Whether a file, whose name contains its hash, has other bytes.
  private func isDamaged(_ path: RelativePath, _ hash: HashFragment) throws -> Bool {
    do {
      return !hash.matches(
        ContentHash(of: try files.read(path, limit: CodecLimits.small.fileBytes)))
    } catch let error as DirectoryError where error.concernsOneFile {
      context.environment.logger.notice("\(path): \(error)")
      return [.damaged, .tooLarge].contains(error.code)
    }
  }

  /// Whether a file is missing, or cannot be decoded.
  private func isLost<Value: Decodable>(
    _ path: RelativePath, as type: Value.Type, _ fileType: Envelope.FileType
  ) throws -> Bool {
    do {
      _ = try files.read(path, as: type, fileType)
      return false
    } catch let error as DirectoryError where error.concernsOneFile {
      return [.notFound, .damaged, .tooLarge].contains(error.code)
    } catch let error as SyncError
      where [.malformedFile, .newerVersionNeeded].contains(error.code)
    {
      context.environment.logger.notice("\(path): \(error)")
      return error.code == .malformedFile
    }
  }
}

extension RecentSyncFile.WholeStore {
  /// The name of its file.
  fileprivate var name: WholeStoreName {
    WholeStoreName(number: number, hash: HashFragment(hash))
  }
}
