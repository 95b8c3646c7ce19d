import SyncModel
import SyncStore

/// Putting right own files in the shared directory, once everything new is published.
extension SyncPass {
  /// Reads all own files, and puts right what is missing or damaged.
  func repairAll(
    _ sealed: [SealedChangeSet], _ commands: [VersionVector.Entry], _ fetched: Fetched
  ) throws -> ThoroughCheck.Damage {
    let (thorough, own) = (ThoroughCheck(session: session), OwnChangeSets(session: session))
    var damage = ThoroughCheck.Damage()
    try CommandSteps(session: session).putBack(commands, listed: thorough.intactCommands())
    damage.lost = try own.putBack(
      sealed, try fetched.turn.own ?? own.list(), readingAtMost: .max)
    damage.restored = try thorough.checkDescription()
    try thorough.checkMarkers(fetched.listing, &damage)
    try thorough.checkWholeStores(fetched.listing, &damage)
    return damage
  }

  /// Puts right own files that others wait for, and those that the listing of this pass's turn
  /// shows to be missing or too short.
  func repairNoticed(
    _ sealed: [SealedChangeSet], _ commands: [VersionVector.Entry], _ asked: AwaitedFiles.Asked,
    _ fetched: Fetched
  ) throws -> ThoroughCheck.Damage {
    let (thorough, own) = (ThoroughCheck(session: session), OwnChangeSets(session: session))
    var damage = ThoroughCheck.Damage()
    let steps = CommandSteps(session: session)
    if asked.hasCommand {
      try steps.putBack(commands, listed: thorough.intactCommands())
    } else if case .commands(let names) = fetched.turn {
      try steps.putBack(commands, listed: steps.leavingOutShort(names, of: commands))
    }
    if let first = asked.changeSet {
      // A device that waits for it has none of the later ones.
      let wanted = sealed.filter { $0.number >= first }
      damage.lost = try own.putBack(
        wanted, try fetched.turn.own ?? own.list(), readingAtMost: .max)
    } else if let names = fetched.turn.own {
      damage.lost = try own.putBack(
        sealed, names, readingAtMost: session.report.isIdle ? 0 : OwnChangeSets.sample,
        measuring: turns)
    }
    guard fetched.turn.own != nil else { return damage }
    try MarkerSteps(session: session).mendOwn()
    if try thorough.hasShortWholeStore() {
      try thorough.checkWholeStores(fetched.listing, &damage)
    }
    return damage
  }

  /// Removes damaged files, now that a marker shows what stands in their place, and reports all of
  /// it.
  func finish(_ damage: ThoroughCheck.Damage) throws {
    var damage = damage
    if damage.needsMarker, let path = try MarkerSteps(session: session).ownPath() {
      damage.restored.append(path)
    }
    for path in damage.removals { try files.remove(path) }
    session.report.restoredFiles += damage.restored.map(\.description)
    session.report.removedFiles = damage.removals.map(\.description)
    session.report.damagedFiles = damage.remaining.map(\.description)
  }
}
