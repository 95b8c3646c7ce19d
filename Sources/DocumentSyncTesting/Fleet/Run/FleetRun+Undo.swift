import DocumentSync
import SyncModel
import SyncStore

/// The end of some histories: a device edits once more, and its change sets are undone.
extension FleetRun {
  /// The most edits that are undone.
  private static let greatestEditCount = 6

  /// Lets a device edit, undoes its change sets on some device, the last one first, and checks that all devices
  /// show the rows from before, unless rows could not be set back.
  func undo(_ devices: [FleetDevice], _ invariants: FleetInvariants) async throws {
    var dice = Dice(seed: plan.undoSeed)
    let (author, actor) = (dice.pick(devices), dice.pick(devices))
    let before = try author.store.digest().visible
    let rows = author.shown
    let first = try author.store.head()?.number ?? 0
    try await edit(author, invariants, &dice)
    try await rest(devices, invariants)
    let last = try author.store.head()?.number ?? 0
    var check = UndoCheck()
    var isWhole = true
    for number in (first..<last).reversed() {
      guard let undo = try await actor.undo(number + 1, of: author.client) else {
        isWhole = false
        break
      }
      outcome.size.undoneRows += undo.rowCount
      if undo.leftCount > 0 { isWhole = false }
      if let row = check.firstUnexpected(in: undo) {
        throw FleetFailure(.undone, "device \(actor.number) has left \(row)")
      }
      if dice.chance(50) { _ = try await invariants.synchronize(actor, salt: dice.word()) }
    }
    try await rest(devices, invariants)
    _ = try invariants.checkEnd(devices)
    guard isWhole, try author.store.digest().visible != before else { return }
    throw FleetFailure(
      .undone,
      "device \(actor.number) has undone the change sets \(first + 1) to \(last) of device "
        + "\(author.number). Device \(author.number) showed:\n\(FleetInvariants.text(rows))\nand shows:\n"
        + FleetInvariants.text(author.shown))
  }

  /// Repeats some edits of the history, with sealings in between.
  private func edit(
    _ device: FleetDevice, _ invariants: FleetInvariants, _ dice: inout Dice
  ) async throws {
    let edits = plan.steps.compactMap { step in
      if case .edit(_, let edit) = step, edit.hasForeignKeys, edit.remade == nil {
        edit
      } else {
        nil
      }
    }
    for edit in dice.shuffled(edits).prefix(Self.greatestEditCount) {
      var edit = edit
      (edit.time, edit.salt) = (device.clock.time, dice.word())
      _ = try device.edit(edit)
      if dice.chance(30) { _ = try await invariants.synchronize(device, salt: dice.word()) }
    }
  }
}

extension FleetDevice {
  /// Undoes a change set; returns `nil` if the directory does not have any more what there was before it. A
  /// rehearsal must come to the same.
  func undo(_ number: UInt64, of author: ClientIdentifier) async throws -> AppliedChangeSet.Undo? {
    guard let manager else { return nil }
    try told?.begin()
    do {
      let rehearsed = try await manager.undoChangeSet(number, of: author, isRehearsal: true)
      try checkTold()
      try told?.begin()
      let undo = try await manager.undoChangeSet(number, of: author)
      try checkTold()
      guard undo == rehearsed else {
        throw FleetFailure(.undone, "device \(self.number): \(undo) instead of \(rehearsed)")
      }
      return undo
    } catch let error as SyncError where error.code == .changeSetUnavailable {
      return nil
    }
  }
}

extension FleetPlan {
  /// Whether edits are undone in the end. Edits that are too large to be sent would stay.
  var undoes: Bool {
    var dice = Dice(seed: undoSeed)
    _ = dice.word()
    return usesManagers && circumstances.memoryBytes == nil && dice.chance(25)
  }

  fileprivate var undoSeed: UInt64 { seed &* 0x9e37_79b9_7f4a_7c15 ^ 0x756e_646f }
}
