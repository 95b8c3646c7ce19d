import SyncDirectory
import SyncModel
import SyncStore

/// The change sets that a store takes along when it becomes a new client.
extension OwnChangeSets {
  /// Makes the store a new client, which writes again what is not common.
  ///
  /// If the store has dropped bytes, they come from the directory. What the directory does not have
  /// either is left out: every member has applied it.
  ///
  /// - Parameter standing: See ``LocalStore/beginIncarnation(_:isAncestorGone:bytes:standing:)``.
  func beginIncarnation(
    _ reason: Incarnation.Reason,
    standing: (SealedChangeSet) throws -> Incarnation.Standing
  ) throws {
    let branch = try store.sealedChangeSets().drop { try standing($0) == .common }
    try store.beginIncarnation(
      reason, bytes: droppedBytes(of: Array(branch)), standing: standing)
  }

  /// Reads the files of change sets whose bytes the store has dropped, since
  /// every member had them. Leaves out those that are lost or damaged.
  func droppedBytes(of sealed: [SealedChangeSet]) throws -> [UInt64: [UInt8]] {
    let wanted = sealed.filter { !$0.isKept }
    var found: [UInt64: [UInt8]] = [:]
    guard !wanted.isEmpty else { return found }
    context.begin(
      .downloading, count: wanted.count, bytes: wanted.reduce(0) { $0 + $1.byteCount })
    let reader = SegmentReader(files, header: header, layout: layout)
    let client = client
    let segments = try records.segments().filter { $0.client == client }
    for sealed in wanted {
      try context.checkCancellation()
      found[sealed.number] = try bytes(of: sealed, in: segments, reader)
      context.report {
        $0.completedCount += 1
        $0.completedBytes += sealed.byteCount
      }
    }
    context.endPhase()
    return found
  }

  private func bytes(
    of sealed: SealedChangeSet, in segments: [RecentSyncFile.Segment], _ reader: SegmentReader
  ) throws -> [UInt8]? {
    let parts = segments.filter { $0.first <= sealed.number && sealed.number <= $0.last }
      .map { segment in { try reader.part(sealed.number, of: segment.name, by: client).bytes } }
    let file = { try files.read(path(of: sealed), limit: CodecLimits.default.fileBytes) }
    var passing: (any Error)?
    for read in parts + [file] {
      do {
        let bytes = try read()
        if ContentHash(of: bytes) == sealed.hash { return bytes }
      } catch let error where error.concernsOneFile {
        // What may pass is no loss.
        if (error as? DirectoryError)?.code == .transient { passing = error }
        context.environment.logger.notice("own change set \(sealed.number): \(error)")
      }
    }
    if let passing { throw passing }
    return nil
  }

  /// Returns which change sets of this store are a branch of its own, after the
  /// directory was found to contain more of this client than the store.
  ///
  /// A change set that is listed under its hash is common to both states. If
  /// two claim one number, the one with the lower hash counts; one that no
  /// device can have seen gives way.
  func standing() throws -> (SealedChangeSet) -> Incarnation.Standing {
    var claims: [UInt64: Set<HashFragment>] = [:]
    for case .changeSet(let name) in try listAll() {
      claims[name.number, default: []].insert(name.hash)
    }
    return { [claims] sealed in
      let own = HashFragment(sealed.hash)
      let others = (claims[sealed.number] ?? []).subtracting([own])
      let isListed = claims[sealed.number]?.contains(own) ?? false
      guard isListed || sealed.isPublished else { return .unknown }
      return others.contains { $0.description < own.description } ? .known : .common
    }
  }

  /// Returns the same after a whole store was found to contain more of this
  /// client.
  ///
  /// If the directory shows no other state of the store, it may have been put
  /// back, too. Then each change set may be known here alone; those that the
  /// other state has as well do no harm when they are written again.
  func standingBesideWholeStore() throws -> (SealedChangeSet) -> Incarnation.Standing {
    let standing = try standing()
    let outbox = try store.outbox()
    let head = outbox.head?.number ?? 0
    let own = Dictionary(
      outbox.own.map { ($0.number, HashFragment($0.hash)) },
      uniquingKeysWith: { first, _ in first })
    let showsOther = try listAll().contains { entry in
      switch entry {
      case .changeSet(let name): own[name.number].map { $0 != name.hash } ?? (name.number > head)
      case .segment(let name): name.numbers.upperBound > head
      }
    }
    guard !showsOther else { return standing }
    return { sealed in
      let found = standing(sealed)
      return found == .common && sealed.isKept ? .known : found
    }
  }
}
