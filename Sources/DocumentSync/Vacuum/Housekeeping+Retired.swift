import SyncDirectory
import SyncModel
import SyncStore

extension Housekeeping {
  /// Vacuums the files of retired clients for which this client is responsible:
  /// it is the author of the retirement, or the first member if the author is
  /// no member.
  func clearAfterRetired(_ findings: inout Findings) throws {
    try forgetMarkers()
    for (retired, retirement) in members.retirements.sorted(by: { $0.key < $1.key }) {
      guard let cut = members.cuts[retired]?.number else { continue }
      guard members.responsible(for: retirement) == client else { continue }
      try clearMarkers(of: retired, &findings)
      try clearChangeSets(of: retired, cut: cut, &findings)
      try clearCommands(of: retired, &findings)
      try removeSuperseded(of: retired, &findings)
    }
  }

  /// Removes the records of retired clients' markers whose files are gone.
  private func forgetMarkers() throws {
    let seen = try records.seenMarkers()
    let left = seen.filter { client, _ in
      members.cuts[client]?.number == nil || listing.newest[client] != nil
    }
    if left != seen { try records.keep(left) }
    let read = try records.readMarkers()
    let known = read.filter { left[$0.key] != nil }
    if known.count != read.count { try records.keep(known) }
  }

  private func clearMarkers(of retired: ClientIdentifier, _ findings: inout Findings) throws {
    var names = listing.older[retired, default: []]
    // Only the newest marker announces commands that have not arrived here, and
    // one of them may name the number up to which the client's change sets are
    // applied.
    if let newest = listing.newest[retired],
      newest.commandHead <= commands.processed.number(of: retired)
    {
      names.append(newest)
    }
    guard let first = names.map(\.revision).min(), let last = names.map(\.revision).max() else {
      return
    }
    findings.removals.append(
      Removal(
        files: VacuumReport.Files(
          kind: .markers, client: retired, first: first, last: last, count: names.count,
          reason: "its client is retired"), paths: names.map { layout.path(of: $0) }))
  }

  private func clearChangeSets(
    of retired: ClientIdentifier, cut: UInt64, _ findings: inout Findings
  ) throws {
    guard cut > 0 else { return }
    let applied = try store.appliedVector()[retired]
    let limit = findings.limits.changeSets(of: retired, head: cut) { number in
      // No member goes beyond the cut, up to which all members apply.
      number == applied?.number ? applied?.hash : nil
    }
    var kept = try records.retiredKept()
    if limit.number + 1 > kept[retired]?.changeSets ?? 1 {
      kept[retired, default: StoreRecords.Kept()].changeSets = limit.number + 1
      try records.keep(kept)
    }
    let lowest = kept[retired]?.changeSets ?? 1
    if limit.number < cut {
      findings.report.kept.append(
        VacuumReport.Files(
          kind: .changeSets, client: retired, first: limit.number + 1, last: cut,
          count: Int(cut - limit.number), reason: limit.reason, member: limit.member))
    }
    guard lowest > 1 else { return }
    let names = try files.listIfPresent(
      layout.syncChanges(of: retired), as: ChangeFileName.self)
    addRemovals(
      names.filter { $0.numbers.upperBound < lowest }, by: retired,
      reason: "its client is retired, every member has applied them, and every whole store "
        + "contains them", to: &findings)
  }

  private func clearCommands(of retired: ClientIdentifier, _ findings: inout Findings) throws {
    let head = commands.processed.number(of: retired)
    guard head > 0 else { return }
    let limit = findings.limits.commands(of: retired, head: head)
    var kept = try records.retiredKept()
    if limit.number + 1 > kept[retired]?.commands ?? 1 {
      kept[retired, default: StoreRecords.Kept()].commands = limit.number + 1
      try records.keep(kept)
    }
    let lowest = kept[retired]?.commands ?? 1
    guard lowest > 1 else { return }
    let names = try files.listIfPresent(layout.syncCommands(of: retired), as: CommandName.self)
    addRemovals(
      names.filter { $0.number < lowest }.sorted(), by: retired,
      reason: "its client is retired, and every member has processed them", to: &findings)
  }
}
