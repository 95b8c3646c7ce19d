import SyncModel

extension Participants {
  /// Makes the three passes.
  mutating func passes(
    over statements: some Sequence<Statement>, verifies: (Statement, VerifyingKey) -> Bool
  ) {
    let ours = Set(statements).filter { $0.root == application.root }
    refusedCount = Set(statements).count - ours.count

    let enrolled = ours.filter { $0.isOfEnrolment && verifies($0, application.enrolment) }
    let ownerRemovals = firstPass(enrolled)
    refusedCount += ours.count { $0.isOfEnrolment } - enrolled.count

    var chains: [DeviceIdentifier: [ContentHash: Statement]] = [:]
    for statement in ours where !statement.isOfEnrolment {
      guard everOwners.contains(statement.author),
        let key = deviceKeys[statement.author]?.verifying, verifies(statement, key)
      else {
        refusedCount += 1
        continue
      }
      chains[statement.author, default: [:]][statement.hash] = statement
    }
    let verified = enrolled.union(chains.values.flatMap(\.values))
    heads = Set(verified.map(\.hash)).subtracting(verified.compactMap(\.previous))
    counted = Set(enrolled.map(\.hash))

    var standing: [Statement] = []
    for author in everOwners {
      let chain = chains[author] ?? [:]
      let counting = secondPass(chain, of: author, removals: ownerRemovals[author] ?? [])
      standing += counting
      for statement in chain.values where !counted.contains(statement.hash) {
        remember(statement)
        if formerOwners.contains(author) { beyond.append(statement) }
      }
    }
    beyond.sort {
      $0.author == $1.author
        ? ($0.number, $0.hash.description) < ($1.number, $1.hash.description)
        : $0.author < $1.author
    }
    thirdPass(standing)
  }

  // MARK: First pass

  /// What the enrolment key signs counts: grants and removals of owners. Returns, for each removed
  /// device, the removals.
  private mutating func firstPass(
    _ enrolled: Set<Statement>
  ) -> [DeviceIdentifier: [Statement.OwnerRemoval]] {
    var removals: [DeviceIdentifier: [Statement.OwnerRemoval]] = [:]
    for statement in enrolled {
      switch statement.content {
      case .ownerGrant(let grant):
        everOwners.insert(grant.keys.device)
        deviceKeys[grant.keys.device] = grant.keys
      case .ownerRemoval(let removal):
        removals[removal.device, default: []].append(removal)
      default: break
      }
    }
    formerOwners = Set(removals.keys)
    owners = everOwners.subtracting(formerOwners)
    return removals
  }

  // MARK: Second pass

  /// The statements of an owner's device are one chain. They count from the first on without a gap;
  /// if the device was removed, only those on the chain to the head that each removal names.
  /// Returns those that count.
  private mutating func secondPass(
    _ chain: [ContentHash: Statement], of author: DeviceIdentifier,
    removals: [Statement.OwnerRemoval]
  ) -> [Statement] {
    var complete: Set<ContentHash> = []
    var numbers: Set<UInt64> = []
    for statement in chain.values.sorted(by: { $0.number < $1.number }) {
      if !numbers.insert(statement.number).inserted { forked.insert(author) }
      guard let previous = statement.previous else {
        if statement.number == 1 { complete.insert(statement.hash) }
        continue
      }
      // A number with a jump is in no chain.
      let before = chain[previous]?.number ?? .max
      if complete.contains(previous), before &+ 1 == statement.number {
        complete.insert(statement.hash)
      }
    }
    if removals.isEmpty {
      // What a removed device names besides does not matter: it could name anything.
      missing.formUnion(chain.values.compactMap(\.previous).filter { chain[$0] == nil })
    }
    for removal in removals {
      complete.formIntersection(way(to: removal.head, in: chain))
    }
    counted.formUnion(complete)
    return complete.compactMap { chain[$0] }
  }

  /// The statements on the chain to a head, itself included, as far as they are here.
  private mutating func way(
    to head: ContentHash?, in chain: [ContentHash: Statement]
  ) -> Set<ContentHash> {
    var found: Set<ContentHash> = []
    var next = head
    while let hash = next, !found.contains(hash) {
      guard let statement = chain[hash] else {
        missing.insert(hash)
        break
      }
      found.insert(hash)
      next = statement.previous
    }
    return found
  }

  /// Remembers what a statement that does not count grants: the files of such a device end as those
  /// of a removed one.
  private mutating func remember(_ statement: Statement) {
    guard case .grant(let grant) = statement.content else { return }
    let device = grant.keys.device
    deviceKeys[device] = grant.keys
    for document in grant.documents {
      let before = voidGrants[device]?[document] ?? .reader
      voidGrants[device, default: [:]][document] = max(before, grant.role)
    }
  }

  // MARK: Third pass

  /// Collects the grants, removals, epochs and files of the statements that count.
  private mutating func thirdPass(_ statements: [Statement]) {
    var sealings: [EpochReference: [Epoch.Sealing]] = [:]
    for statement in statements {
      switch statement.content {
      case .grant(let grant):
        let device = grant.keys.device
        deviceKeys[device] = grant.keys
        for document in grant.documents {
          let before = grants[device]?[document] ?? .reader
          grants[device, default: [:]][document] = max(before, grant.role)
        }
      case .removal(let removal) where removal.documents.isEmpty:
        removedFromAll.insert(removal.device)
      case .removal(let removal):
        removals[removal.device, default: []].formUnion(removal.documents)
      case .keys(let keys):
        sealings[keys.epoch, default: []].append(
          Epoch.Sealing(author: statement.author, keys: keys))
      case .file(let file):
        files.insert(file)
      case .ownerGrant, .ownerRemoval:
        break
      }
    }
    collectEpochs(sealings)
  }

  /// An epoch counts if its number is 1, or if one before it counts: so that numbers have no gap,
  /// and no owner's device can use them up.
  private mutating func collectEpochs(_ sealings: [EpochReference: [Epoch.Sealing]]) {
    for reference in sealings.keys.sorted(by: { $0.number < $1.number }) {
      let all = sealings[reference] ?? []
      let sound = all.filter { sealing in
        sealing.keys.formerEpoch.map { epochs[$0] != nil } ?? (reference.number == 1)
      }
      guard !sound.isEmpty else { continue }
      epochs[reference] = Epoch(
        reference: reference,
        sealings: sound.sorted {
          ($0.author, $0.keys.encoded().hashForOrder) < ($1.author, $1.keys.encoded().hashForOrder)
        })
    }
  }
}

extension [UInt8] {
  /// A text by which equal sets of statements give equal lists.
  fileprivate var hashForOrder: String { ContentHash(of: self).description }
}
