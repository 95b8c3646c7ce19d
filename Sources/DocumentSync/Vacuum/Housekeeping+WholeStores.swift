import SyncDirectory
import SyncModel
import SyncStore

extension Housekeeping {
  /// Returns the whole stores in the directory that markers list.
  private func listed(_ findings: Findings) throws -> [RecentSyncFile.WholeStore] {
    let said =
      try records.wholeStores()
      + findings.known.filter { members.all.contains($0.key) }.flatMap(\.value.wholeStores)
    var unique: [ContentHash: RecentSyncFile.WholeStore] = [:]
    for store in said where isThere(store, findings) { unique[store.hash] = store }
    return unique.values.sorted { ($0.client, $0.number) < ($1.client, $1.number) }
  }

  private func isThere(_ store: RecentSyncFile.WholeStore, _ findings: Findings) -> Bool {
    findings.wholeStores[store.client, default: []].contains { name in
      name.number == store.number && name.hash.matches(store.hash)
    }
  }

  /// Removes whole stores that are gone and superseded from this store's list.
  func updateVerified(_ findings: inout Findings) throws {
    let before = try records.wholeStores()
    let there = try listed(findings)
    let after = before.filter { store in
      isThere(store, findings) || !there.contains { $0.supersedes(store) }
    }
    if after != before { try records.keep(after) }
    findings.limits = findings.limits.replacing(after, of: client)
  }

  // MARK: Uploading

  /// Returns the vacuumed change sets and commands that this store knows of.
  private func clearedAway(
    _ known: [ClientIdentifier: RecentSyncFile]
  ) throws -> ClearedAway {
    var cleared = ClearedAway(known.values)
    let kept = try records.kept()
    cleared.add(client, kept.changeSets, kept.commands)
    for (client, kept) in try records.retiredKept() {
      cleared.add(client, kept.changeSets, kept.commands)
    }
    for (client, cut) in members.cuts {
      if let number = cut.number { cleared.cut(client, after: number) }
    }
    return cleared
  }

  /// Whether no listed whole store contains everything that was vacuumed, but
  /// this store does.
  ///
  /// Two members that do not know of each other each vacuum the changes that
  /// their own whole store contains. A member that has vacuumed nothing leaves
  /// the upload to them, and reads no markers.
  func isJoinImpossible() throws -> Bool {
    let kept = try records.kept()
    guard try kept.changeSets > 1 || kept.commands > 1 || !records.retiredKept().isEmpty else {
      return false
    }
    let known = try KnownMarkers(session: session).update(listing)
    let cleared = try clearedAway(known)
    guard !cleared.isContained(in: VersionVector(), commands: VersionVector()) else {
      return false
    }
    let listed =
      try records.wholeStores()
      + known.filter { members.all.contains($0.key) }.flatMap(\.value.wholeStores)
    return try !listed.contains { cleared.isContained(in: $0.vector, commands: $0.commands) }
      && cleared.isContained(in: store.vector(), commands: commands.commands)
  }

  /// Uploads a whole store if the next device to join would have to fetch too
  /// much beyond the best one, or could not join, since every one in the
  /// directory lacks something that was vacuumed.
  func uploadIfWorthIt(_ findings: inout Findings) throws {
    let cleared = try clearedAway(findings.known)
    func isComplete(_ store: RecentSyncFile.WholeStore) -> Bool {
      cleared.isContained(in: store.vector, commands: store.commands)
    }
    func rank(_ store: RecentSyncFile.WholeStore) -> (Int, UInt64, UInt64) {
      (isComplete(store) ? 1 : 0, store.vector.sum, store.commands.sum)
    }
    let best = try listed(findings).max { rank($0) < rank($1) }
    var vector = try store.appliedVector()
    vector[client] = head
    let rank = members.all.sorted().firstIndex(of: client) ?? 0
    var isWorthIt = try WholeStoreDecision(
      best: best.map { ($0.vector, $0.byteCount) }, vector: vector, rank: rank,
      thresholds: context.environment.thresholds
    ).isWorthIt { try store.historyByteCount(beyond: $0) }
    if let best, !isComplete(best) {
      isWorthIt = cleared.isContained(in: vector, commands: commands.commands)
    }
    guard isWorthIt else { return }
    let uploaded = try WholeStoreSteps(files).uploadIfPossible(store) {
      findings.warnings.append($0)
    }
    guard uploaded != nil else { return }
    findings.report.uploadedWholeStore = true
    findings.wholeStores[client] = try files.listIfPresent(
      layout.wholeStores(of: client), as: WholeStoreName.self)
    findings.limits = findings.limits.replacing(try records.wholeStores(), of: client)
  }

  // MARK: Removing

  /// Collects own whole stores that another verified one contains. The one that
  /// contains most is never among them.
  func vacuumWholeStores(_ findings: inout Findings) throws {
    try removeSuperseded(of: client, &findings)
    var mine = try records.wholeStores()
    let removed = findings.removals.filter { $0.files.kind == .wholeStores }.flatMap(\.paths)
    let before = mine
    mine.removeAll { removed.contains(path(of: $0)) }
    if mine != before { try records.keep(mine) }
  }

  private func path(of store: RecentSyncFile.WholeStore) -> RelativePath {
    layout.path(
      of: WholeStoreName(number: store.number, hash: HashFragment(store.hash)), by: store.client)
  }

  /// Adds the superseded whole stores of a client to the removals.
  func removeSuperseded(of owner: ClientIdentifier, _ findings: inout Findings) throws {
    let there = try listed(findings)
    let said =
      try records.wholeStores()
      + findings.known.values.flatMap(\.wholeStores)
    for name in findings.wholeStores[owner, default: []].sorted() {
      // A whole store that no marker lists may be intact: then its number shows
      // that it is older.
      let own = said.first {
        $0.client == owner && $0.number == name.number && name.hash.matches($0.hash)
      }
      let isSuperseded =
        if let own {
          there.contains { $0.supersedes(own) }
        } else {
          there.contains { $0.client == owner && $0.number > name.number }
        }
      guard isSuperseded else {
        findings.report.kept.append(
          VacuumReport.Files(
            kind: .wholeStores, client: owner, first: name.number, last: name.number, count: 1,
            reason: "no other checked copy of the database contains everything in it"))
        continue
      }
      findings.removals.append(
        Removal(
          files: VacuumReport.Files(
            kind: .wholeStores, client: owner, first: name.number, last: name.number, count: 1,
            reason: "another checked copy of the database contains everything in it"),
          paths: [layout.path(of: name, by: owner)],
          byteCounts: own.map { [layout.path(of: name, by: owner): $0.byteCount] } ?? [:]))
    }
  }
}

/// Decides whether the next device to join would have to fetch so much that a
/// new whole store is worth its upload.
struct WholeStoreDecision {
  /// The content and the length of the best whole store; `nil` if there is
  /// none.
  var best: (vector: VersionVector, byteCount: Int)?
  /// The content of a new whole store.
  var vector: VersionVector
  /// How many members come before this one: the threshold grows with it, so
  /// that the members do not all upload at once.
  var rank: Int
  var thresholds = SyncThresholds()

  /// - Parameter byteCount: Returns the length of the change sets beyond a
  ///   vector.
  func isWorthIt(_ byteCount: (VersionVector) throws -> Int) rethrows -> Bool {
    // Without any whole store no device can join.
    guard let best else { return rank == 0 }
    let count = vector.entries.reduce(UInt64(0)) { sum, entry in
      let has = best.vector.number(of: entry.key)
      return sum + (entry.value.number > has ? entry.value.number - has : 0)
    }
    let scale = 1 + Double(rank) / 4
    if Double(count) > Double(thresholds.wholeStoreCount) * scale { return true }
    guard count > 0 else { return false }
    let bytes = Double(try byteCount(best.vector))
    return bytes > Double(thresholds.wholeStoreBytes) * scale
      && bytes > Double(best.byteCount) / 2 * scale
  }
}

extension VersionVector {
  /// The sum of its numbers: a vector that contains another one has a greater
  /// sum.
  var sum: UInt64 { entries.values.reduce(0) { $0 &+ $1.number } }
}

extension RecentSyncFile.WholeStore {
  /// Whether this one contains all that the other does. If two have the same
  /// content, exactly one supersedes the other, so that one always stays.
  func supersedes(_ other: Self) -> Bool {
    guard hash != other.hash, vector.contains(other.vector), commands.contains(other.commands)
    else { return false }
    let isMore = !other.vector.contains(vector) || !other.commands.contains(commands)
    return isMore || hash.description > other.hash.description
  }
}

extension ClearingLimits {
  /// Returns the limits with other whole stores for one member.
  func replacing(
    _ wholeStores: [RecentSyncFile.WholeStore], of member: ClientIdentifier
  ) -> ClearingLimits {
    ClearingLimits(
      words: words.map { word in
        guard word.member == member else { return word }
        var word = word
        word.marker?.wholeStores = wholeStores
        return word
      })
  }
}
