import SyncDirectory
import SyncModel
import SyncStore

extension Housekeeping {
  /// Returns the path of a segment in a marker.
  private func path(of segment: RecentSyncFile.Segment) -> RelativePath {
    layout.path(of: segment.name, by: segment.client)
  }

  /// Returns the segments that a member other than their author has verified.
  private func verified(_ findings: Findings) throws -> Set<RecentSyncFile.Segment> {
    var verified = Set(try records.segments().filter { $0.client != client })
    for (member, marker) in findings.known where members.all.contains(member) {
      verified.formUnion(marker.segments.filter { $0.client != member })
    }
    return verified
  }

  // MARK: Verifying

  /// Reads segments of others that no member has verified, and records the
  /// intact ones.
  ///
  /// The member after the author comes first, then the next, so that not every
  /// member reads everything.
  func verifySegments(_ findings: inout Findings, isThorough: Bool) throws {
    let offered = findings.known.filter { members.all.contains($0.key) }.flatMap { author, marker in
      marker.segments.filter { $0.client == author }
    }
    var mine = try records.segments()
    let before = mine
    let isOffered = Set(offered)
    // If its author has dropped a segment, another one contains its change sets
    // by now, or no device needs them.
    mine.removeAll { $0.client != client && !isOffered.contains($0) }
    let verified = try verified(findings)
    var counts = try records.unverified()
    let reader = SegmentReader(files, header: header, layout: layout)
    let waiting = offered.filter { !verified.contains($0) }.sorted {
      ($0.client, $0.first) < ($1.client, $1.first)
    }
    var due: [RecentSyncFile.Segment] = []
    for segment in waiting {
      let count = counts[segment.hash.description, default: 0]
      counts[segment.hash.description] = count + 1
      if isThorough || count >= rank(after: segment.client) { due.append(segment) }
    }
    if !due.isEmpty { context.begin(.verifying, count: due.count) }
    for segment in due {
      defer { context.report { $0.completedCount += 1 } }
      do {
        let (_, hash, byteCount) = try reader.read(segment.name, by: segment.client)
        context.report { $0.completedBytes += byteCount }
        guard hash == segment.hash else {
          throw CodecError(.badChecksum, "segment of another hash")
        }
        mine.append(segment)
        findings.report.verifiedSegments += 1
      } catch let error where error.concernsOneFile {
        context.environment.logger.notice("segment \(path(of: segment)): \(error)")
      }
    }
    if !due.isEmpty { context.endPhase() }
    let open = Set(waiting.map(\.hash.description))
    counts = counts.filter { open.contains($0.key) }
    if counts != (try records.unverified()) { try records.keep(counts) }
    if mine != before { try records.keep(mine) }
  }

  /// Returns how many members come between another one and this one, in a
  /// circle.
  private func rank(after other: ClientIdentifier) -> Int {
    let all = members.all.union([client, other]).sorted()
    guard let from = all.firstIndex(of: other), let own = all.firstIndex(of: client) else {
      return 0
    }
    return (own - from - 1 + all.count) % all.count
  }

  // MARK: Compaction

  /// Makes segments where there are many files, and removes files that a
  /// segment contains which another member has verified.
  func compact(_ findings: inout Findings) throws {
    var own = try records.segments().filter { $0.client == client }
    let others = try records.segments().filter { $0.client != client }
    let lowest = try records.kept().changeSets
    let there = Set(
      findings.own.compactMap { name in
        if case .segment(let name) = name { name } else { nil }
      })
    // If a segment is gone from the folder, its loose files are restored.
    own.removeAll { $0.last < lowest || !there.contains($0.name) }

    let sealed = try store.sealedChangeSets().filter(\.isPublished)
    let byNumber = Dictionary(
      sealed.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    let loose = Set(
      findings.own.compactMap { name -> UInt64? in
        guard case .changeSet(let name) = name, let sealed = byNumber[name.number],
          name.hash.matches(sealed.hash),
          !own.contains(where: { $0.first <= name.number && name.number <= $0.last })
        else { return nil }
        return name.number
      })
    let plan = CompactionPlan(
      loose: loose, existing: own.map { $0.first...$0.last },
      thresholds: context.environment.thresholds
    ) {
      byNumber[$0]?.byteCount ?? 0
    }
    beginCompacting(plan, byNumber)
    for range in plan.segments {
      defer { context.report { $0.completedCount += 1 } }
      guard let made = try make(range, byNumber, own) else { continue }
      own.append(made)
      findings.report.madeSegments += 1
    }
    if !plan.segments.isEmpty { context.endPhase() }
    let segments = others + own.sorted { ($0.first, $0.last) < ($1.first, $1.last) }
    if segments != (try records.segments()) { try records.keep(segments) }
    try dropContained(own, byNumber, &findings)
  }

  /// Begins the phase, whose total is known beforehand.
  private func beginCompacting(_ plan: CompactionPlan, _ sealed: [UInt64: SealedChangeSet]) {
    guard !plan.segments.isEmpty else { return }
    let bytes = plan.segments.reduce(0) { sum, range in
      range.reduce(sum) { $0 + (sealed[$1]?.byteCount ?? 0) }
    }
    context.begin(.compacting, count: plan.segments.count, bytes: bytes)
  }

  /// Publishes the segment for a range of change sets; returns `nil` if one of
  /// them is not available.
  private func make(
    _ range: ClosedRange<UInt64>, _ sealed: [UInt64: SealedChangeSet],
    _ existing: [RecentSyncFile.Segment]
  ) throws -> RecentSyncFile.Segment? {
    let binding = binding
    var segment = Segment(
      root: binding.root, document: binding.document, generation: binding.generation,
      client: client, first: range.lowerBound, parts: [])
    let reader = SegmentReader(files, header: header, layout: layout)
    for number in range {
      try context.checkCancellation()
      defer { context.report { $0.completedBytes += sealed[number]?.byteCount ?? 0 } }
      guard let known = sealed[number],
        let bytes = try bytes(of: known, reader, existing)
      else {
        context.environment.logger.notice("no segment: change set \(number) is missing")
        return nil
      }
      segment.parts.append(Segment.Part(hash: known.hash, bytes: bytes))
    }
    let bytes = try SegmentCodec.encode(segment)
    let made = RecentSyncFile.Segment(
      client: client, first: range.lowerBound, last: range.upperBound,
      hash: ContentHash(of: bytes))
    try files.publishReplacingDamaged(bytes, at: path(of: made), by: client)
    return made
  }

  /// Returns the bytes of an own change set, from the store, a smaller segment,
  /// or its own file; `nil` if none of them is intact.
  private func bytes(
    of sealed: SealedChangeSet, _ reader: SegmentReader, _ existing: [RecentSyncFile.Segment]
  ) throws -> [UInt8]? {
    if sealed.isKept {
      let bytes = try store.sealedBytes(sealed.number)
      return ContentHash(of: bytes) == sealed.hash ? bytes : nil
    }
    let containing = existing.filter {
      $0.first <= sealed.number && sealed.number <= $0.last
    }
    for segment in containing {
      do {
        let part = try reader.part(sealed.number, of: segment.name, by: client)
        if part.hash == sealed.hash { return part.bytes }
      } catch let error where error.concernsOneFile {
        context.environment.logger.notice("segment \(path(of: segment)): \(error)")
      }
    }
    let name = ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash))
    do {
      let bytes = try files.read(
        layout.path(of: name, by: client), limit: CodecLimits.default.fileBytes)
      return ContentHash(of: bytes) == sealed.hash ? bytes : nil
    } catch let error where error.concernsOneFile {
      context.environment.logger.notice("change set \(sealed.number): \(error)")
      return nil
    }
  }

  /// Collects loose files and smaller segments that another segment contains,
  /// if another member has verified that segment, or there is no other member.
  private func dropContained(
    _ own: [RecentSyncFile.Segment], _ sealed: [UInt64: SealedChangeSet],
    _ findings: inout Findings
  ) throws {
    let verified = members.all == [client] ? Set(own) : try verified(findings)
    let safe = own.filter { verified.contains($0) }
    var gone: [ChangeFileName] = []
    for name in findings.own {
      let numbers = name.numbers
      guard
        safe.contains(where: { segment in
          segment.first <= numbers.lowerBound && numbers.upperBound <= segment.last
            && name != .segment(segment.name)
        })
      else { continue }
      // A file that claims a number of this store with other content stays, as
      // evidence.
      if case .changeSet(let name) = name {
        guard let known = sealed[name.number], name.hash.matches(known.hash) else { continue }
      } else if case .segment(let name) = name {
        guard own.contains(where: { $0.name == name }) else { continue }
      }
      gone.append(name)
    }
    addRemovals(
      gone, by: client, reason: "they are in a segment that another member has checked",
      byteCounts: sealed.mapValues(\.byteCount), to: &findings)
    let names = Set(gone)
    let segments = try records.segments()
    let left = segments.filter { $0.client != client || !names.contains(.segment($0.name)) }
    if left != segments { try records.keep(left) }
    for segment in own where !verified.contains(segment) {
      findings.report.kept.append(
        VacuumReport.Files(
          kind: .changeSets, client: client, first: segment.first, last: segment.last,
          count: findings.own.filter { name in
            segment.first <= name.numbers.lowerBound && name.numbers.upperBound <= segment.last
              && name != .segment(segment.name)
          }.count,
          reason: "they are in a segment that no other member has checked yet"))
    }
    findings.report.kept.removeAll { $0.count == 0 }
  }
}

extension RecentSyncFile.Segment {
  var name: SegmentName { SegmentName(numbers: first...last, hash: HashFragment(hash)) }
}
