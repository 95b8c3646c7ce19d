import SyncDirectory
import SyncModel
import SyncStore

/// Removes the files that no device needs any more: vacuum, compaction, whole
/// stores, and the files of retired clients and of this client's former
/// generations.
///
/// It reads the newest marker of each member, and removes nothing because of a
/// name alone. It removes files only after its own marker has announced that.
struct Housekeeping: StoreSteps {
  let session: SyncSession
  let listing: MarkerSteps.Listing
  let members: Members
  let commands: CommandState
  /// The last change set of this client.
  let head: VersionVector.Entry?
  /// Publishes a marker, if it would contain anything new.
  let tell: () throws -> Bool

  /// Whether enough has changed since the last time. The first call for a store
  /// only records its state.
  func isDue(_ thresholds: SyncThresholds) throws -> Bool {
    let now = try standing()
    guard let last = try records.housekeeping() else {
      try records.keep(now)
      return false
    }
    return now.head >= last.head + thresholds.ownInterval
      || now.applied >= last.applied + thresholds.appliedInterval
  }

  private func standing() throws -> StoreRecords.Vacuumed {
    StoreRecords.Vacuumed(
      head: head?.number ?? 0,
      applied: try store.appliedVector().entries.values.reduce(0) {
        min($0 + $1.number, StoredNumbers.greatest)
      })
  }

  /// The findings of the steps, for the following steps.
  struct Findings {
    var known: [ClientIdentifier: RecentSyncFile]
    var limits: ClearingLimits
    /// The whole stores in the directory.
    var wholeStores: [ClientIdentifier: [WholeStoreName]]
    /// The own files in SyncChanges.
    var own: [ChangeFileName]
    /// The files to remove after the marker is published.
    var removals: [Removal] = []
    /// The generations whose last files of this store are among the removals.
    var formerLives: [FormerLives.Leftovers] = []
    var report = VacuumReport()
    var warnings: [SyncWarning] = []
  }

  /// Files to remove.
  struct Removal {
    var files: VacuumReport.Files
    var paths: [RelativePath]
    /// The lengths that are known without measuring.
    var byteCounts: [RelativePath: Int] = [:]
  }

  /// Runs all steps.
  ///
  /// - Parameter isThorough: Whether to check every segment of others that no
  ///   member has verified, rather than this member's share of them.
  func run(isThorough: Bool = false) throws -> VacuumReport {
    context.begin(.listing)
    let known = try KnownMarkers(session: session).update(listing)
    var findings = Findings(
      known: known, limits: try limits(known), wholeStores: try listWholeStores(),
      own: try files.listIfPresent(layout.syncChanges(of: client), as: ChangeFileName.self))
    try updateVerified(&findings)
    try verifySegments(&findings, isThorough: isThorough)
    try uploadIfWorthIt(&findings)
    try vacuumChangeSets(&findings)
    try compact(&findings)
    try vacuumWholeStores(&findings)
    try vacuumCommands(&findings)
    try clearAfterRetired(&findings)
    try clearFormerLives(&findings)
    _ = try tell()
    try remove(&findings)
    try records.keep(standing())
    if !findings.report.removed.isEmpty { context.send(.vacuumed(findings.report)) }
    session.report.warnings += findings.warnings
    return findings.report
  }

  private func limits(_ known: [ClientIdentifier: RecentSyncFile]) throws -> ClearingLimits {
    ClearingLimits(
      words: try members.all.sorted().map { member in
        guard member != client else {
          return ClearingLimits.Word(
            member: member,
            marker: ClearingLimits.Said(
              applied: try store.appliedVector(), commands: commands.commands,
              wholeStores: try records.wholeStores()))
        }
        return ClearingLimits.Word(
          member: member,
          marker: known[member].map {
            ClearingLimits.Said(
              applied: $0.applied, commands: $0.commandsApplied, wholeStores: $0.wholeStores)
          })
      })
  }

  private func listWholeStores() throws -> [ClientIdentifier: [WholeStoreName]] {
    var found: [ClientIdentifier: [WholeStoreName]] = [:]
    for client in try files.listIfPresent(layout.wholeStores, as: ClientIdentifier.self) {
      found[client] = try files.listIfPresent(
        layout.wholeStores(of: client), as: WholeStoreName.self)
    }
    return found
  }

  // MARK: Change sets

  private func vacuumChangeSets(_ findings: inout Findings) throws {
    let sealed = try store.sealedChangeSets()
    let hashes = Dictionary(
      sealed.map { ($0.number, $0.hash) }, uniquingKeysWith: { first, _ in first })
    let published = sealed.prefix { $0.isPublished }.last?.number
    var kept = try records.kept()
    let head = published ?? kept.changeSets - 1
    let limit = findings.limits.changeSets(of: client, head: head) { hashes[$0] }
    if limit.number >= kept.changeSets {
      kept.changeSets = limit.number + 1
      try records.keep(kept)
      // The last one stays: it shows whether a member has applied the same
      // change set.
      try store.forgetSealed(below: limit.number)
    }
    if limit.number < head, kept.changeSets <= head {
      findings.report.kept.append(
        VacuumReport.Files(
          kind: .changeSets, client: client, first: max(limit.number + 1, kept.changeSets),
          last: head, count: Int(head - max(limit.number, kept.changeSets - 1)),
          reason: limit.reason, member: limit.member))
    }
    // Includes the files that an interruption has left.
    let gone = findings.own.filter { $0.numbers.upperBound < kept.changeSets }
    findings.own.removeAll { $0.numbers.upperBound < kept.changeSets }
    addRemovals(
      gone, by: client,
      reason: "every member has applied them, and every whole store contains them",
      byteCounts: Dictionary(
        sealed.map { ($0.number, $0.byteCount) }, uniquingKeysWith: { first, _ in first }),
      to: &findings)
  }

  /// Adds files in SyncChanges to the removals.
  ///
  /// - Parameter byteCounts: The lengths of change sets by their numbers.
  func addRemovals(
    _ names: [ChangeFileName], by client: ClientIdentifier, reason: String,
    byteCounts: [UInt64: Int] = [:], to findings: inout Findings
  ) {
    var lengths: [RelativePath: Int] = [:]
    for case .changeSet(let name) in names {
      lengths[layout.path(of: name, by: client)] = byteCounts[name.number]
    }
    for kind in [VacuumReport.Files.Kind.changeSets, .segments] {
      let some = names.filter { name in
        if case .segment = name { kind == .segments } else { kind == .changeSets }
      }
      guard let first = some.map(\.numbers.lowerBound).min(),
        let last = some.map(\.numbers.upperBound).max()
      else { continue }
      findings.removals.append(
        Removal(
          files: VacuumReport.Files(
            kind: kind, client: client, first: first, last: last, count: some.count,
            reason: reason),
          paths: some.sorted { $0.numbers.lowerBound < $1.numbers.lowerBound }.map {
            layout.path(of: $0, by: client)
          }, byteCounts: lengths))
    }
  }

  // MARK: Commands

  private func vacuumCommands(_ findings: inout Findings) throws {
    let head = commands.own.published?.number ?? 0
    guard head > 0 else { return }
    var kept = try records.kept()
    let limit = findings.limits.commands(of: client, head: head)
    if limit.number >= kept.commands {
      kept.commands = limit.number + 1
      try records.keep(kept)
      try store.forgetCommands(through: limit.number)
    }
    guard kept.commands > 1 else { return }
    let names = try files.listIfPresent(layout.syncCommands(of: client), as: CommandName.self)
    let gone = names.filter { $0.number < kept.commands }.sorted()
    addRemovals(
      gone, by: client, reason: "every member, and every whole store, has processed them",
      to: &findings)
  }

  /// Adds commands to the removals.
  func addRemovals(
    _ names: [CommandName], by client: ClientIdentifier, reason: String,
    to findings: inout Findings
  ) {
    guard let first = names.first, let last = names.last else { return }
    findings.removals.append(
      Removal(
        files: VacuumReport.Files(
          kind: .commands, client: client, first: first.number, last: last.number,
          count: names.count, reason: reason),
        paths: names.map { layout.path(of: $0, by: client) }))
  }

  // MARK: Removing

  private func remove(_ findings: inout Findings) throws {
    let lengths = findings.removals.flatMap { removal in
      removal.paths.map { removal.byteCounts[$0] }
    }
    let known = lengths.compactMap(\.self)
    // There is no total while some lengths are unknown.
    let isMeasured = known.count == lengths.count
    context.begin(
      .removing, count: lengths.count, bytes: isMeasured ? known.reduce(0, +) : 0)
    for removal in findings.removals {
      var removed = removal.files
      for path in removal.paths {
        do {
          try files.remove(path)
        } catch let error as DirectoryError {
          // A file that stays does no harm; the next run tries again.
          removed.count -= 1
          findings.formerLives.removeAll { $0.files.contains { $0.paths.contains(path) } }
          context.environment.logger.notice("removing \(path): \(error)")
        }
        context.report {
          $0.completedCount += 1
          if isMeasured { $0.completedBytes += removal.byteCounts[path] ?? 0 }
        }
      }
      if removed.count > 0 { findings.report.removed.append(removed) }
    }
    for leftovers in findings.formerLives {
      try FormerLives(session: session).finish(leftovers)
    }
  }
}
