import DocumentSync
import SyncDirectory
import SyncModel
import SyncStore

/// Synchronization without a manager.
extension FleetDevice {
  /// Applies the visible change sets in any order, some of them again, then seals and publishes.
  /// Returns whether there was nothing to do.
  func synchronizeDirectly(
    salt: UInt64, _ extent: SynchronizeOperation.Extent, _ check: EditCheck
  ) throws -> Bool {
    let binding = store.binding
    let generation = DirectoryLayout.Document(binding.document).generation(binding.generation)
    let hasApplied = try extent != .sending && applyDirectly(salt: salt, generation, check)
    let hasPublished = try extent != .fetching && publishDirectly(generation)
    return !hasApplied && !hasPublished
  }

  /// Returns whether there was anything to apply.
  private func applyDirectly(
    salt: UInt64, _ generation: DirectoryLayout.Generation, _ check: EditCheck
  ) throws -> Bool {
    var dice = Dice(seed: salt)
    let applied = try store.appliedVector()
    var received: [ReceivedChangeSet] = []
    let folders = try directory.listIfPresent(generation.syncChanges, as: ClientIdentifier.self)
    for author in folders.names where author != client {
      let names = try directory.list(
        generation.syncChanges(of: author), as: ChangeSetName.self
      ).names
      for name in names {
        let isKnown = name.number <= applied.number(of: author)
        if isKnown, !dice.chance(10) { continue }
        let bytes = try directory.read(
          generation.path(of: name, by: author), limit: .max)
        received.append(
          ReceivedChangeSet(
            changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes),
            bytes: bytes))
      }
    }
    // Without this, applying seals first, in its own transaction.
    if dice.chance(50) { try sealAndCheck(check) }
    received = dice.shuffled(received)
    if dice.chance(30), received.count > 1 {
      let middle = received.count / 2
      try checkNothingRefused(try store.apply(Array(received[..<middle])))
      received.removeFirst(middle)
    }
    let report = try store.apply(received)
    try checkNothingRefused(report)
    return !report.applied.isEmpty
  }

  /// Seals and publishes. Returns whether there was anything to publish.
  private func publishDirectly(_ generation: DirectoryLayout.Generation) throws -> Bool {
    _ = try store.seal()
    var published = 0
    for sealed in try store.sealedChangeSets() where !sealed.isPublished {
      let bytes = try store.sealedBytes(sealed.number)
      let name = ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash))
      try directory.publish(bytes, at: generation.path(of: name, by: client), by: client)
      try store.markPublished(sealed.number)
      published += 1
    }
    return published > 0
  }

  /// Throws if the store refuses a change set, since no device may make one that another cannot
  /// apply.
  private func checkNothingRefused(_ report: ApplyReport) throws {
    guard let refused = report.refused.first else { return }
    throw FleetFailure(
      .error("refused"),
      "device \(number) refuses change set \(refused.number) of \(refused.client): "
        + refused.message)
  }
}
