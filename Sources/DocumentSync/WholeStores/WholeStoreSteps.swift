import SyncDirectory
import SyncModel
import SyncStore

/// Uploads the whole store, and finds one to join from.
struct WholeStoreSteps {
  /// A whole store in the directory, with its content as far as it is known.
  struct Candidate {
    var client: ClientIdentifier
    var name: WholeStoreName
    /// The change sets that it contains; `nil` if no marker lists it.
    var vector: VersionVector?
    /// The commands that it has processed; `nil` if no marker lists it.
    var commands: VersionVector?
    /// The authors of vacuumed change sets that it lacks.
    var lacking: Set<ClientIdentifier> = []
    /// Whether it contains everything that was vacuumed, including commands.
    var isComplete = false
  }

  /// The whole stores in the directory, the best first.
  struct Listed {
    var candidates: [Candidate] = []
    /// The vacuumed change sets and commands, as far as the markers show.
    let cleared: ClearedAway

    init(cleared: ClearedAway) { self.cleared = cleared }

    /// Describes a whole store by its header, whatever the markers contain.
    func described(_ candidate: Candidate, by header: WholeStoreHeader) -> Candidate {
      described(candidate, header.vector, header.commands)
    }

    fileprivate func described(
      _ candidate: Candidate, _ vector: VersionVector, _ commands: VersionVector
    ) -> Candidate {
      var candidate = candidate
      candidate.vector = vector
      candidate.commands = commands
      candidate.lacking = cleared.clients(lackedBy: vector)
      candidate.isComplete = cleared.isContained(in: vector, commands: commands)
      return candidate
    }
  }

  private struct StoreKey: Hashable {
    var client: ClientIdentifier
    var number: UInt64
  }

  let files: SharedFiles
  var context: OperationContext { files.context }

  init(_ files: SharedFiles) { self.files = files }

  // MARK: Upload

  /// Uploads a snapshot of the store and records it as verified. The next
  /// RecentSync announces it.
  ///
  /// Throws ``StoreError`` `unpublishedEdits` if there are any, and
  /// `storeDamaged` if no device could join from the snapshot.
  func upload(_ store: LocalStore) throws -> WholeStoreDescription {
    try upload(store) {
      try store.snapshot(
        to: $0, checkCancellation: context.checkCancellation, onProgress: context.count(bytes:of:))
    }
  }

  /// Does the same while other programs may make edits: seals and publishes them first.
  func uploadWithEdits(
    of store: LocalStore, turns: SyncTurns
  ) throws -> WholeStoreDescription {
    try upload(store) { path in
      let snapshot = try store.sealedSnapshot(
        to: path, checkCancellation: context.checkCancellation,
        onProgress: context.count(bytes:of:), prepare: files.confirmRoot)
      // Devices that join from the copy count them as applied: the others must get them, too.
      let own = OwnChangeSets(session: SyncSession(files: files, store: store))
      try own.publish(OwnChangeSets.Sealed(outbox: try store.outbox()), turns: turns)
      return snapshot
    }
  }

  private func upload(
    _ store: LocalStore, _ makeSnapshot: (_ path: String) throws -> StoreSnapshot
  ) throws -> WholeStoreDescription {
    let siblings = LocalSiblings(store: store.path, operation: context.verb)
    try siblings.removeAll()
    do {
      let written = try upload(store, by: siblings, makeSnapshot)
      try siblings.removeAll()
      context.send(.wholeStoreUploaded(description(written)))
      return description(written)
    } catch {
      try siblings.removeAll()
      throw error
    }
  }

  private func upload(
    _ store: LocalStore, by siblings: LocalSiblings,
    _ makeSnapshot: (_ path: String) throws -> StoreSnapshot
  ) throws -> WholeStoreFile.Checked {
    let binding = store.binding
    context.begin(.snapshot)
    let snapshot = try makeSnapshot(siblings.temporary("snapshot"))
    let commands = try CommandState.read(from: store).commands
    let layout = DirectoryLayout.Document(binding.document).generation(binding.generation)
    let last = try files.listIfPresent(
      layout.wholeStores(of: binding.client), as: WholeStoreName.self
    ).map(\.number).max()
    // The file of a lost whole store may reappear: its number is not used
    // again.
    let made = try StoreRecords(store).wholeStores().filter { $0.client == binding.client }
      .map(\.number).max()
    let number = max(last ?? 0, made ?? 0) + 1
    let file = siblings.temporary("store")
    let header = WholeStoreHeader(
      root: binding.root, document: binding.document, generation: binding.generation,
      generationOrdinal: UInt64(binding.generationOrdinal), client: binding.client,
      number: number, vector: snapshot.vector, commands: commands, schema: snapshot.schema,
      storeByteCount: 0,
      storeHash: ContentHash(of: []), milliseconds: context.environment.now())
    try examine(snapshot, header, of: store)
    let written = try WholeStoreFile(context).write(snapshot.path, header: header, to: file)
    // The directory reads back the published file.
    try files.upload(
      file,
      to: layout.path(
        of: WholeStoreName(number: number, hash: HashFragment(written.hash)), by: binding.client),
      byteCount: written.byteCount, by: binding.client)
    try note(written, in: store)
    return written
  }

  /// Uploads the whole store as one of several tasks. Returns `nil` if the
  /// upload is not possible, so that the caller can continue.
  ///
  /// - Parameter warn: Called with a warning if no device could join from the
  ///   whole store.
  func uploadIfPossible(
    _ store: LocalStore, warn: (SyncWarning) -> Void
  ) throws -> WholeStoreDescription? {
    do {
      return try upload(store)
    } catch let error as StoreError where error.code == .unpublishedEdits {
      // The store was edited meanwhile: the next call tries again.
      context.environment.logger.notice("\(error)")
    } catch let error as StoreError where error.code == .unsupportedSchema {
      // The report of the synchronization warns of the table.
      context.environment.logger.notice("\(error)")
    } catch let error as SyncError where error.code == .storeDamaged {
      warn(SyncWarning(.wholeStoreRefused, message: error.message))
    }
    return nil
  }

  /// Does the same for the store of a session, and reports it.
  func uploadIfPossible(in session: SyncSession) throws -> WholeStoreDescription? {
    let uploaded = try uploadIfPossible(session.store) { session.report.warnings.append($0) }
    if uploaded != nil { session.report.uploadedWholeStore = true }
    return uploaded
  }

  /// Throws if no device could join from a snapshot: others would rely on it,
  /// and vacuum the changes that it claims to contain.
  private func examine(
    _ snapshot: StoreSnapshot, _ header: WholeStoreHeader, of store: LocalStore
  ) throws {
    let examination = try WholeStoreExamination(
      snapshot.path, header: header, checkCancellation: context.checkCancellation)
    guard let fault = examination.faults.first(where: \.isGrave) else { return }
    throw context.error(
      .storeDamaged, path: store.path,
      "No copy of the database is uploaded, since no device could join from it: \(fault.message)",
      remedy: "Run \(.verify) on the store, and do what it says.", detail: fault.detail)
  }

  /// Records a whole store as verified by this store: its database matches its
  /// header.
  func note(_ checked: WholeStoreFile.Checked, in store: LocalStore) throws {
    let records = StoreRecords(store)
    let header = checked.header
    // A joining device would choose from the last few.
    let others = try records.wholeStores().filter { $0.hash != checked.hash }.suffix(7)
    try records.keep(
      others + [
        RecentSyncFile.WholeStore(
          client: header.client, number: header.number, hash: checked.hash,
          vector: header.vector, commands: header.commands, byteCount: checked.byteCount)
      ])
  }

  /// Returns the description of a whole store for callers.
  func description(_ checked: WholeStoreFile.Checked) -> WholeStoreDescription {
    WholeStoreDescription(
      client: checked.header.client, number: checked.header.number, hash: checked.hash,
      vector: checked.header.vector, byteCount: checked.byteCount,
      storeByteCount: checked.header.storeByteCount)
  }

  // MARK: Download

  /// Returns the whole stores of a document, the one that contains most first.
  ///
  /// Those that contain everything that was vacuumed come first. If one
  /// contains all that another does, and more, the sum of its numbers is
  /// greater, so that it comes before the other.
  func candidates(_ document: GenerationFile) throws -> [Candidate] {
    try list(document).candidates
  }

  /// Returns the whole stores, with the vacuumed change sets and commands.
  func list(_ document: GenerationFile) throws -> Listed {
    let layout = DirectoryLayout.Document(document.document).generation(document.generation)
    let markers = try self.markers(layout)
    let known = Dictionary(grouping: markers.flatMap(\.wholeStores)) {
      StoreKey(client: $0.client, number: $0.number)
    }
    var listed = Listed(cleared: ClearedAway(markers))
    for client in try files.listIfPresent(layout.wholeStores, as: ClientIdentifier.self) {
      for name in try files.listIfPresent(
        layout.wholeStores(of: client), as: WholeStoreName.self)
      {
        let said = known[StoreKey(client: client, number: name.number)]?.first {
          name.hash.matches($0.hash)
        }
        let candidate = Candidate(client: client, name: name)
        listed.candidates.append(
          said.map { listed.described(candidate, $0.vector, $0.commands) } ?? candidate)
      }
    }
    func rank(_ candidate: Candidate) -> (Int, UInt64, UInt64, UInt64) {
      (
        candidate.vector == nil ? 0 : candidate.isComplete ? 2 : 1, candidate.vector?.sum ?? 0,
        candidate.commands?.sum ?? 0, candidate.name.number
      )
    }
    listed.candidates.sort { rank($0) > rank($1) }
    return listed
  }

  /// Reads all markers that can be read.
  private func markers(_ layout: DirectoryLayout.Generation) throws -> [RecentSyncFile] {
    var found = MarkersInMemory<MarkerName>()
    for name in try files.listIfPresent(layout.recentSyncs, as: MarkerName.self) {
      do {
        found.add(
          try files.read(layout.path(of: name), as: RecentSyncFile.self, .recentSync), for: name)
      } catch let error where error.concernsOneFile {
        context.environment.logger.notice("marker \(name): \(error)")
      }
    }
    return Array(found.markers.values)
  }
}
