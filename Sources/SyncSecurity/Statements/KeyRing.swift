import SyncModel

/// The epoch keys that a device has, and what it may do with them.
package struct KeyRing: Sendable {
  /// The application.
  package let root: RootIdentifier
  /// The keys. Old ones stay: old files need them.
  package private(set) var keys: [EpochReference: EpochKey] = [:]

  /// An epoch key that does not open, though it is sealed for this device.
  package struct Problem: Hashable, Sendable {
    /// The epoch whose key does not open.
    package var epoch: EpochReference
    /// The owner's device that sealed it.
    package var author: DeviceIdentifier
  }

  /// Takes the keys that a device has stored. Those that are not what their names say are left out.
  package init(root: RootIdentifier, keys: [EpochReference: EpochKey] = [:]) {
    self.root = root
    self.keys = keys.filter { $0.value.isKey(of: $0.key, root: root) }
  }

  // MARK: Reading

  /// Returns the key of an epoch; `nil` if the device does not have it.
  package func key(of epoch: EpochReference) -> EpochKey? { keys[epoch] }

  /// Opens every epoch key that is sealed to a device or to the owner key, and the keys before
  /// them. Returns those that are sealed and do not open.
  ///
  /// - Parameter recipient: The device; for the owner key, `nil`.
  @discardableResult
  package mutating func open(
    _ participants: Participants, as recipient: DeviceIdentifier?, with key: OpeningKey
  ) -> Set<Problem> {
    let recipient = recipient ?? .enrolment(of: root)
    var problems: Set<Problem> = []
    for epoch in participants.epochs.values where keys[epoch.reference] == nil {
      for sealing in epoch.sealings {
        do {
          let opened = try sealing.keys.open(
            for: recipient, with: key, author: sealing.author, root: root)
          guard let opened else { continue }
          keys[epoch.reference] = opened
          break
        } catch {
          problems.insert(Problem(epoch: epoch.reference, author: sealing.author))
        }
      }
    }
    problems.formUnion(openFormer(participants))
    return problems.filter { keys[$0.epoch] == nil }
  }

  /// Opens the keys before those that the device has, from the latest down.
  private mutating func openFormer(_ participants: Participants) -> Set<Problem> {
    var problems: Set<Problem> = []
    for epoch in participants.epochs.values.sorted(by: { $0.reference.number > $1.reference.number }
    ) {
      guard let key = keys[epoch.reference] else { continue }
      for sealing in epoch.sealings {
        guard let former = sealing.keys.formerEpoch, keys[former] == nil else { continue }
        do {
          keys[former] = try sealing.keys.openFormer(with: key, root: root)
        } catch {
          problems.insert(Problem(epoch: former, author: sealing.author))
        }
      }
    }
    return problems
  }

  // MARK: Writing

  /// Returns the epoch under which files of a generation are to be sealed, and its key.
  ///
  /// It never falls back to another epoch. Throws ``SecurityError`` if no epoch is fit, if this
  /// device lacks its key, or if a statement has not arrived that another one or a marker of an
  /// owner names.
  ///
  /// - Parameter missing: The statements that owners' markers name, and that are not here.
  package func keyForWriting(
    _ document: DocumentName, in generation: IntegrityKey, _ participants: Participants,
    missing: Set<ContentHash> = []
  ) throws -> (epoch: EpochReference, key: EpochKey) {
    let absent = participants.missing.union(missing)
    guard absent.isEmpty else {
      throw SecurityError(
        .statementMissing, "A statement about who takes part has not arrived.",
        remedy: "Wait until the shared directory has brought it.",
        detail: "\(absent.count) statements")
    }
    guard let epoch = participants.fitEpoch(of: document, in: generation) else {
      throw SecurityError(
        .noFitEpoch, "The participants have changed, and there is no key for them yet.",
        remedy: "Let an owner synchronize: the owner's device makes the key.")
    }
    guard let key = keys[epoch.reference] else {
      throw SecurityError(
        .noEpochKey, "This device does not have the present key yet.",
        remedy: "Let an owner synchronize: the owner's device seals the key for this one.",
        detail: "epoch \(epoch.reference.number)")
    }
    return (epoch.reference, key)
  }

  // MARK: What owners make

  /// Makes an epoch for the participants of a document, and keeps its key. It follows the latest
  /// epoch whose key this device has.
  ///
  /// - Parameter leaving: Devices that still take part, and that a removal to be published after
  ///   the epoch names.
  package mutating func makeEpoch(
    of document: DocumentName, in generation: IntegrityKey, _ participants: Participants,
    leaving: Set<DeviceIdentifier> = [], author: DeviceIdentifier,
    using generator: inout some RandomNumberGenerator
  ) throws -> [EpochKeys] {
    // An owner's device could have made a later one of which it gave the key to no other.
    let former = participants.epochs(of: document, in: generation).last {
      keys[$0.reference] != nil
    }
    let number = (former?.reference.number ?? 0) + 1
    let key = EpochKey.random(using: &generator)
    let reference = key.reference(
      root: root, document: document, generation: generation, number: number)
    let formerKey = former.flatMap { epoch in
      keys[epoch.reference].map { (epoch.reference, $0) }
    }
    let devices = Set(participants.participants(in: document).keys).subtracting(leaving)
    let made = try seal(
      key, reference, former: formerKey, to: devices.union([.enrolment(of: root)]), participants,
      author: author)
    keys[reference] = key
    return made
  }

  /// Seals the epoch keys that participants lack, as far as this device has them.
  package func sealings(
    lackingIn document: DocumentName, _ generation: IntegrityKey, _ participants: Participants,
    author: DeviceIdentifier
  ) throws -> [EpochKeys] {
    var made: [EpochKeys] = []
    let lacking = participants.lackingSealings(of: document, in: generation)
    for (epoch, devices) in lacking.sorted(by: { $0.key < $1.key }) {
      guard let key = keys[epoch] else { continue }
      var former: (EpochReference, EpochKey)?
      if epoch.number > 1 {
        // A statement without the key before would be none of this epoch.
        let known = participants.epochs[epoch]?.former.sorted().first { keys[$0] != nil }
        guard let known, let formerKey = keys[known] else { continue }
        former = (known, formerKey)
      }
      made += try seal(key, epoch, former: former, to: devices, participants, author: author)
    }
    return made
  }

  private func seal(
    _ key: EpochKey, _ epoch: EpochReference, former: (EpochReference, EpochKey)?,
    to devices: Set<DeviceIdentifier>, _ participants: Participants, author: DeviceIdentifier
  ) throws -> [EpochKeys] {
    var recipients: [(DeviceIdentifier, SealingKey)] = []
    for device in devices.sorted() {
      if device == .enrolment(of: root) {
        recipients.append((device, participants.application.owner))
      } else if let keys = participants.keys(of: device) {
        recipients.append((device, keys.sealing))
      }
    }
    var made: [EpochKeys] = []
    while !recipients.isEmpty {
      let part = recipients.prefix(Statement.greatestRecipients)
      recipients.removeFirst(part.count)
      made.append(
        try EpochKeys(
          sealing: key, of: epoch, former: former,
          to: Dictionary(uniqueKeysWithValues: Array(part)), author: author, root: root))
    }
    return made
  }
}
