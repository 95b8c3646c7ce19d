import SyncModel

/// Who takes part with which role: a pure function of a set of statements, without clock and
/// causality.
///
/// It is found in three passes (`Participants+Passes.swift`). The order in which statements
/// arrived, and how often, changes nothing.
package struct Participants: Sendable {
  /// Where a device stands in a document.
  package enum Standing: Hashable, Sendable {
    /// It takes part with a role.
    case takesPart(Role)
    /// It was removed; it had the role before.
    case removed(Role)
    /// It has a grant, and none that counts.
    case void(Role)
    /// No statement that is here grants it anything.
    case unknown
  }

  /// The application whose statements count.
  package let application: ApplicationKeys

  /// The devices of owners that take part.
  package internal(set) var owners: Set<DeviceIdentifier> = []
  /// The owners' devices that the enrolment key has removed. What it removes takes part in
  /// nothing.
  package internal(set) var formerOwners: Set<DeviceIdentifier> = []
  /// The devices that had a grant of the enrolment key at any time.
  var everOwners: Set<DeviceIdentifier> = []
  /// The greatest role that counted statements of owners' devices grant, in each document.
  var grants: [DeviceIdentifier: [DocumentName: Role]] = [:]
  /// The documents from which counted statements remove a device.
  var removals: [DeviceIdentifier: Set<DocumentName>] = [:]
  /// The devices that counted statements remove from all documents.
  var removedFromAll: Set<DeviceIdentifier> = []
  /// The greatest role in grants that do not count.
  var voidGrants: [DeviceIdentifier: [DocumentName: Role]] = [:]
  /// The public keys of every device that a verified statement grants something, counted or not.
  var deviceKeys: [DeviceIdentifier: DevicePublicKeys] = [:]

  /// The epochs that count.
  package internal(set) var epochs: [EpochReference: Epoch] = [:]
  /// The generation files and tombstones that count.
  package internal(set) var files: Set<Statement.CountedFile> = []

  /// The hashes of the statements that count.
  package internal(set) var counted: Set<ContentHash> = []
  /// What removed owners stated beyond the heads that their removals name: to be looked at, and
  /// repeated by an owner where it was right. In order of author and number.
  package internal(set) var beyond: [Statement] = []
  /// The statements that others name, and that are not here: until they are, nothing may be sealed.
  package internal(set) var missing: Set<ContentHash> = []
  /// The devices of which two statements have one number.
  package internal(set) var forked: Set<DeviceIdentifier> = []
  /// The verified statements after which no other verified one comes, as markers name them.
  package internal(set) var heads: Set<ContentHash> = []
  /// The number of statements that count for nothing: of another root, with a wrong signature, or
  /// of a device that never was an owner's.
  package internal(set) var refusedCount = 0

  /// Finds the participants of a set of statements.
  package init(of statements: some Sequence<Statement>, in application: ApplicationKeys) {
    self.init(of: statements, in: application) { $2.verifies($1, of: $0.signedMessage) }
  }

  /// Does the same as ``init(of:in:)`` with another way to verify a statement's signature.
  init(
    of statements: some Sequence<Statement>, in application: ApplicationKeys,
    verifying verifies: (Statement, [UInt8], VerifyingKey) -> Bool
  ) {
    self.application = application
    passes(over: statements) { verifies($0, $0.signature, $1) }
  }

  // MARK: Answers

  /// Returns where a device stands in a document.
  package func standing(of device: DeviceIdentifier, in document: DocumentName) -> Standing {
    if owners.contains(device) { return .takesPart(.owner) }
    let granted = grants[device]?[document]
    if formerOwners.contains(device) {
      return .removed(everOwners.contains(device) ? .owner : granted ?? .reader)
    }
    if let granted {
      let isRemoved =
        removedFromAll.contains(device) || removals[device]?.contains(document) == true
      return isRemoved ? .removed(granted) : .takesPart(granted)
    }
    return voidGrants[device]?[document].map { .void($0) } ?? .unknown
  }

  /// Returns the role of a device in a document; `nil` if it takes no part.
  package func role(of device: DeviceIdentifier, in document: DocumentName) -> Role? {
    if case .takesPart(let role) = standing(of: device, in: document) { return role }
    return nil
  }

  /// Returns the devices that take part in a document, with their roles.
  package func participants(in document: DocumentName) -> [DeviceIdentifier: Role] {
    var found: [DeviceIdentifier: Role] = [:]
    for device in owners.union(grants.keys) {
      if let role = role(of: device, in: document) { found[device] = role }
    }
    return found
  }

  /// Returns the public keys of a device that a statement names, even if it takes no part.
  package func keys(of device: DeviceIdentifier) -> DevicePublicKeys? { deviceKeys[device] }

  /// Returns whether a generation file or a tombstone counts.
  package func counts(
    _ kind: Statement.CountedFile.Kind, _ hash: ContentHash, in document: DocumentName
  ) -> Bool {
    files.contains(Statement.CountedFile(kind: kind, document: document, hash: hash))
  }

  /// Returns the statements among `named`, as a marker names them, that are not here.
  package func missing(of named: some Sequence<ContentHash>, among here: Set<ContentHash>)
    -> Set<ContentHash>
  {
    Set(named).subtracting(here)
  }

  // MARK: Epochs

  /// An epoch, with everything that counted statements say about it.
  package struct Epoch: Hashable, Sendable {
    /// Its name.
    package let reference: EpochReference
    /// The counted statements about it, with their authors. Each has sealings and the key before.
    package internal(set) var sealings: [Sealing]

    /// A statement about an epoch, and its author.
    package struct Sealing: Hashable, Sendable {
      /// The owner's device that sealed the key: it knows it.
      package var author: DeviceIdentifier
      /// The sealed keys.
      package var keys: EpochKeys
    }

    /// The devices that know the key: those to which it was sealed, and those that sealed it.
    package var holders: Set<DeviceIdentifier> {
      Set(sealings.flatMap { [$0.author] + $0.keys.recipients.map(\.device) })
    }

    /// The epochs before it: one, unless an owner's device states what is not true.
    package var former: Set<EpochReference> { Set(sealings.compactMap(\.keys.formerEpoch)) }
  }

  /// Returns the epochs of a generation that count, the latest last.
  package func epochs(
    of document: DocumentName, in generation: IntegrityKey
  ) -> [Epoch] {
    epochs.values
      .filter { $0.reference.document == document && $0.reference.generation == generation }
      .sorted { $0.reference < $1.reference }
  }

  /// Returns whether an epoch is fit for writing: it counts, and every device that knows its key
  /// takes part now.
  package func isFit(_ epoch: Epoch) -> Bool {
    epoch.holders.allSatisfy { device in
      device == .enrolment(of: application.root)
        || role(of: device, in: epoch.reference.document) != nil
    }
  }

  /// Returns the epoch under which files of a generation are to be sealed; `nil` if none is fit.
  package func fitEpoch(of document: DocumentName, in generation: IntegrityKey) -> Epoch? {
    epochs(of: document, in: generation).last { isFit($0) }
  }

  /// The epoch keys that devices lack, and that an owner has to seal to them: for each, the epochs
  /// in which it neither is a recipient nor reaches the key through those of later epochs.
  ///
  /// The owner key is a device with the bits of the root.
  package func lackingSealings(
    of document: DocumentName, in generation: IntegrityKey
  ) -> [EpochReference: Set<DeviceIdentifier>] {
    let known = epochs(of: document, in: generation)
    let devices = Set(participants(in: document).keys)
      .union([.enrolment(of: application.root)])
    var lacking: [EpochReference: Set<DeviceIdentifier>] = [:]
    for device in devices {
      var reached: Set<EpochReference> = []
      for epoch in known.reversed() {
        let isReached = reached.contains(epoch.reference)
        let isSealed = epoch.sealings.contains { sealing in
          sealing.keys.recipients.contains { $0.device == device }
        }
        if !isReached && !isSealed { lacking[epoch.reference, default: []].insert(device) }
        // What is sealed to it now gives the keys before.
        reached.formUnion(epoch.former)
      }
    }
    return lacking
  }
}
