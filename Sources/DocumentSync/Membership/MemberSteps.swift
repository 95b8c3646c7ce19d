import SyncDirectory
import SyncModel
import SyncStore

/// Finds the members, from the markers in the directory and the records of the
/// store.
struct MemberSteps: StoreSteps {
  let session: SyncSession

  /// Finds the members. It reads markers only while a client is being retired,
  /// or if a new member has come since.
  func find(
    _ seen: [ClientIdentifier: StoreRecords.SeenMarker], _ listing: MarkerSteps.Listing,
    _ state: CommandState
  ) throws -> Members {
    guard !state.retirements.isEmpty else { return try members(seen, [:], state, needs: []) }
    let needs = try store.waiting().map {
      Members.Need(author: $0.client, number: $0.number, missing: $0.missing)
    }
    let known = try records.readMarkers()
    let members = try members(seen, known, state, needs: needs)
    let isNew = members.remaining.contains { $0 != client && known[$0] == nil }
    let own = members.retirements[client] != nil
    guard !members.isSettled || isNew || own else { return members }
    let read = try KnownMarkers(session: session).update(listing)
    return read == known ? members : try self.members(seen, read, state, needs: needs)
  }

  /// Finds the members from the store and from the markers in `known`.
  func members(
    _ seen: [ClientIdentifier: StoreRecords.SeenMarker],
    _ known: [ClientIdentifier: RecentSyncFile], _ state: CommandState, needs: [Members.Need]
  ) throws -> Members {
    var revisions = seen.mapValues(\.revision)
    revisions[client] = try records.ownMarker()?.content.revision ?? 0
    return Members(
      own: client,
      ownStanding: Members.Standing(
        commands: state.commands, applied: try store.appliedVector()),
      revisions: revisions,
      standings: known.mapValues {
        Members.Standing(commands: $0.commandsApplied, applied: $0.applied)
      }, retirements: state.retirements, needs: needs)
  }

  /// Returns the retired clients for the next marker.
  func retired(_ members: Members) throws -> [RecentSyncFile.Retired] {
    let kept = try records.retiredKept()
    return members.cuts.sorted { $0.key < $1.key }.map { client, cut in
      let lowest = kept[client] ?? StoreRecords.Kept()
      return RecentSyncFile.Retired(
        client: client, cut: cut.number, lowestKept: lowest.changeSets,
        lowestKeptCommand: lowest.commands)
    }
  }

  /// Drops waiting change sets of retired clients beyond the number up to which
  /// these are applied.
  func forgetUnwanted(_ members: Members, _ state: CommandState) throws {
    guard !members.cuts.isEmpty else { return }
    let applied = try store.appliedVector()
    var limits: [ClientIdentifier: UInt64] = [:]
    for waiting in try store.waiting() {
      guard let cut = members.cuts[waiting.client] else { continue }
      let limit = cut.number ?? applied.number(of: waiting.client)
      if waiting.number > limit { limits[waiting.client] = limit }
    }
    if !limits.isEmpty { try CommandSteps(session: session).keep(state, limits: limits) }
  }

  // MARK: Absence

  /// The most that the time between two synchronizations counts, a day in
  /// milliseconds: a device that was off itself has not been waiting for other
  /// devices.
  private static let longest: Int64 = 24 * 60 * 60 * 1000
  /// The least time between two records of absence: an hour in milliseconds.
  private static let interval: Int64 = 60 * 60 * 1000
  /// The least number of synchronizations in which a client has to be absent.
  static let leastCount = 3

  /// Records which members have done nothing that this store has seen, by the
  /// clock of this device.
  func observeAbsence(
    _ members: Members, _ seen: [ClientIdentifier: StoreRecords.SeenMarker], now: Int64
  ) throws {
    let before = try records.absences()
    var absences = before.filter { members.remaining.contains($0.key) }
    for member in members.remaining where member != client {
      let revision = seen[member]?.revision ?? 0
      guard var absence = absences[member], absence.revision == revision else {
        absences[member] = StoreRecords.Absence(
          revision: revision, milliseconds: 0, count: 0, last: now)
        continue
      }
      let elapsed = now &- absence.last
      if elapsed < 0 {
        absence.last = now
      } else if elapsed >= Self.interval {
        absence.milliseconds += min(elapsed, Self.longest)
        absence.count += 1
        absence.last = now
      }
      absences[member] = absence
    }
    if absences != before { try records.keep(absences) }
  }
}

extension Members.Cut {
  /// The number up to which every member applies; `nil` while it is open.
  var number: UInt64? { if case .settled(let number) = self { number } else { nil } }
}
