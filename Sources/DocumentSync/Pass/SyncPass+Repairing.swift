import SyncModel
import SyncStore

/// Repairs of own files in the shared directory, after everything new is
/// published.
extension SyncPass {
  /// Reads all own files, and restores missing and damaged ones.
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

  /// Restores own files that others wait for, and those that this pass's
  /// listing shows as missing or too short.
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
      // A device that waits for the file has none of the later ones.
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

  /// Removes damaged files, now that a marker names their replacements, and
  /// reports all repairs.
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
