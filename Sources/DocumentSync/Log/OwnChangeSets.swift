import SyncDirectory
import SyncModel
import SyncStore

/// Seals and publishes the change sets of this store, and restores lost ones.
struct OwnChangeSets: StoreSteps {
  /// How many own files a synchronization reads if it has other work.
  static let sample = 4

  let session: SyncSession

  /// The files in the own folder.
  struct Listed: Sendable {
    var changeSets: [ChangeSetName] = []
    var segments: [SegmentName] = []
  }

  /// Lists the own files in the directory. Throws ``Fork`` if the directory has
  /// change sets of this client that the store has not made; reports files that
  /// only claim to be such.
  func list() throws -> Listed {
    let names = try listAll()
    let outbox = try store.outbox()
    let head = outbox.head?.number ?? 0
    var listed = Listed()
    for case .segment(let name) in names {
      guard name.numbers.upperBound <= head else {
        throw Fork(
          path: layout.path(of: name, by: client),
          detail: "own change set \(name.numbers.upperBound); the store's last is \(head)")
      }
      listed.segments.append(name)
    }
    let sealed = Dictionary(
      outbox.own.map { ($0.number, HashFragment($0.hash)) },
      uniquingKeysWith: { first, _ in first })
    var others: [ChangeSetName] = []
    for case .changeSet(let name) in names.sorted(by: { $0.description < $1.description }) {
      let isOwn = sealed[name.number].map { $0 == name.hash } ?? (name.number <= head)
      if isOwn { listed.changeSets.append(name) } else { others.append(name) }
    }
    for name in others {
      let isThere =
        name.number <= head
        && (listed.changeSets.contains { $0.number == name.number }
          || listed.segments.contains { $0.numbers.contains(name.number) })
      try examine(name, isThere: isThere)
    }
    return listed
  }

  /// Examines a file under an own number that the store has not made. Throws
  /// ``Fork`` if it is a change set of this client.
  ///
  /// - Parameter isThere: Whether the store's own file of that number is in the
  ///   directory, so that no device waits for this one.
  private func examine(
    _ name: ChangeSetName, isThere: Bool
  ) throws {
    let header = header
    let reader = ChangeFileReader(
      files, header: header, layout: layout,
      segments: SegmentReader(files, header: header, layout: layout))
    let outcome = try reader.read([
      ChangeFetchQueue.Item(client: client, number: name.number, names: [name])
    ]).first
    guard outcome?.intact.isEmpty ?? true else {
      throw Fork(
        path: layout.path(of: name, by: client),
        detail: "change set \(name.number) of this client, which the store has not made")
    }
    if let failure = outcome?.failure, !isThere { session.report.waiting.append(failure) }
  }

  func listAll() throws -> [ChangeFileName] {
    try files.listIfPresent(layout.syncChanges(of: client), as: ChangeFileName.self)
  }

  /// Publishes change sets that the store sealed as another client, byte for
  /// byte, into that client's folder.
  private func publishAncestral(_ sealed: [SealedChangeSet]) throws {
    guard !sealed.isEmpty else { return }
    context.begin(
      .uploading, count: sealed.count, bytes: sealed.reduce(0) { $0 + $1.byteCount })
    for sealed in sealed {
      try publish(sealed, try storedFile(of: sealed))
      try store.markPublished(sealed.number, of: sealed.client)
      session.report.sent.append(summary(sealed))
      context.report {
        $0.completedCount += 1
        $0.completedBytes += sealed.byteCount
      }
    }
  }

  /// The result of sealing.
  struct Sealed: Sendable {
    /// All change sets that the store has sealed.
    var outbox: SealedChangeSets
    /// The files of those that were just sealed, as far as they are small.
    var files: [UInt64: [UInt8]] = [:]
  }

  /// Seals the local edits, and returns all change sets that the store has
  /// sealed.
  func seal() throws -> Sealed {
    context.begin(.sealing)
    try context.checkCancellation()
    let sealed = try store.seal(
      checkCancellation: context.checkCancellation, onProgress: context.count(_:of:),
      prepare: files.confirmRoot)
    session.report.warnings = SyncWarning.joining(session.report.warnings + sealed.warnings)
    return Sealed(outbox: try store.outbox(), files: sealed.files)
  }

  /// Publishes sealed change sets in order, those of a former client first,
  /// since the chain continues from there.
  ///
  /// If it is interrupted after it published a file and before it recorded
  /// that, the next run publishes the same bytes under the same name.
  func publish(_ sealed: Sealed, turns: SyncTurns) throws {
    try publishAncestral(sealed.outbox.ancestral)
    let unpublished = sealed.outbox.own.filter { !$0.isPublished }
    let handedOn = sealed.files
    guard !unpublished.isEmpty else { return }
    if turns.isFirstPublication() { try files.removeLeftovers(of: client) }
    try store.renewToken()
    let bytes = unpublished.reduce(0) { $0 + $1.byteCount }
    context.begin(.uploading, count: unpublished.count, bytes: bytes)
    for sealed in unpublished {
      let file = try handedOn[sealed.number] ?? storedFile(of: sealed)
      try publish(sealed, file)
      try store.markPublished(sealed.number)
      session.report.sent.append(summary(sealed))
      context.report {
        $0.completedCount += 1
        $0.completedBytes += sealed.byteCount
      }
    }
  }

  /// Publishes own files again that were published before and are damaged, or
  /// missing in a listing of the own folder. Reads at most `limit` of the
  /// existing files, beginning anywhere. Returns those that it cannot publish
  /// again, since the store no longer has their bytes.
  ///
  /// Vacuumed files are not missed, nor those in a segment. A damaged segment
  /// is replaced by the files that were in it.
  ///
  /// - Parameter turns: Selects files whose lengths are compared without
  ///   reading them; those of another length are read.
  func putBack(
    _ kept: [SealedChangeSet], _ listed: Listed, readingAtMost limit: Int,
    measuring turns: SyncTurns? = nil
  ) throws -> [SealedChangeSet] {
    var lost: [SealedChangeSet] = []
    let lowest = try records.kept().changeSets
    let kept = kept.filter { $0.isPublished && $0.number >= lowest }
    let segments = try checkedSegments(
      listed, readingAtMost: limit, measures: turns != nil)
    let present = Set(listed.changeSets)
    for sealed in kept where !present.contains(name(of: sealed)) {
      if segments.contains(where: { $0.numbers.contains(sealed.number) }) { continue }
      if try !putBack(sealed) { lost.append(sealed) }
    }
    let there = kept.filter { present.contains(name(of: $0)) }
    guard !there.isEmpty else { return lost }
    var chosen = try (turns?.files(of: there.count) ?? []).map { there[$0] }.filter {
      try files.measure(path(of: $0)) != $0.byteCount
    }
    if limit > 0 {
      let start = Int(context.environment.random() % UInt64(there.count))
      let sample = (0..<min(limit, there.count)).map { there[(start + $0) % there.count] }
      chosen += sample.filter { !chosen.contains($0) }
    }
    guard !chosen.isEmpty else { return lost }
    context.begin(
      .verifying, count: chosen.count, bytes: chosen.reduce(0) { $0 + $1.byteCount })
    for sealed in chosen {
      if try !isIntact(sealed), try !putBack(sealed) { lost.append(sealed) }
      context.report {
        $0.completedCount += 1
        $0.completedBytes += sealed.byteCount
      }
    }
    return lost
  }

  /// Returns the own segments in the directory, without those that were read
  /// and found damaged.
  private func checkedSegments(
    _ listed: Listed, readingAtMost limit: Int, measures: Bool
  ) throws -> [SegmentName] {
    let made = try records.segments()
    let mine = made.filter { $0.client == client && listed.segments.contains($0.name) }
    guard !mine.isEmpty else { return [] }
    var damaged: Set<RecentSyncFile.Segment> = []
    var chosen =
      try measures
      ? mine.filter { try files.measure(layout.path(of: $0.name, by: client)) == 0 } : []
    if limit > 0 {
      let start = Int(context.environment.random() % UInt64(mine.count))
      let sample = (0..<(limit == .max ? mine.count : 1)).map { mine[(start + $0) % mine.count] }
      chosen += sample.filter { !chosen.contains($0) }
    }
    guard !chosen.isEmpty else { return mine.map(\.name) }
    context.begin(.verifying, count: chosen.count)
    for segment in chosen {
      let path = layout.path(of: segment.name, by: client)
      defer { context.report { $0.completedCount += 1 } }
      do {
        let bytes = try files.read(path, limit: CodecLimits.default.fileBytes)
        context.report { $0.completedBytes += bytes.count }
        if ContentHash(of: bytes) == segment.hash { continue }
      } catch let error as DirectoryError where error.concernsOneFile {
        context.environment.logger.notice("segment \(path): \(error)")
      }
      damaged.insert(segment)
    }
    context.endPhase()
    guard !damaged.isEmpty else { return mine.map(\.name) }
    try records.keep(made.filter { !damaged.contains($0) })
    for segment in damaged { try files.remove(layout.path(of: segment.name, by: client)) }
    return mine.filter { !damaged.contains($0) }.map(\.name)
  }

  private func isIntact(_ sealed: SealedChangeSet) throws -> Bool {
    do {
      let bytes = try files.read(path(of: sealed), limit: CodecLimits.default.fileBytes)
      return ContentHash(of: bytes) == sealed.hash
    } catch let error as DirectoryError where error.concernsOneFile {
      return false
    }
  }

  private func putBack(_ sealed: SealedChangeSet) throws -> Bool {
    guard sealed.isKept else { return false }
    context.environment.logger.notice("putting back change set \(sealed.number)")
    try publish(sealed, try storedFile(of: sealed))
    session.report.restored.append(summary(sealed))
    return true
  }

  /// Returns the file of a change set from the store.
  private func storedFile(of sealed: SealedChangeSet) throws -> [UInt8] {
    let bytes = try store.sealedBytes(sealed.number, of: sealed.client)
    guard store.hash(of: bytes) == sealed.hash else {
      throw context.error(
        .storeDamaged, path: store.path,
        "The store's own change set \(sealed.number) is damaged in the store.",
        remedy: "Run SQLite's integrity_check on the store, and restore it if that fails.")
    }
    return bytes
  }

  private func publish(_ sealed: SealedChangeSet, _ bytes: [UInt8]) throws {
    try files.publishReplacingDamaged(bytes, at: path(of: sealed), by: client)
  }

  func name(of sealed: SealedChangeSet) -> ChangeSetName {
    ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash))
  }

  func path(of sealed: SealedChangeSet) -> RelativePath {
    layout.path(of: name(of: sealed), by: sealed.client)
  }

  private func summary(_ sealed: SealedChangeSet) -> SyncReport.ChangeSet {
    SyncReport.ChangeSet(
      client: sealed.client, number: sealed.number, hash: sealed.hash, rowCount: sealed.rowCount,
      byteCount: sealed.byteCount)
  }
}
