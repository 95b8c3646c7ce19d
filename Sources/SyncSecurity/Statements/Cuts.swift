import SyncModel

/// Up to which number the change sets, or the commands, of clients count whose device takes no part
/// any more.
///
/// They count as far as an owner or a writer had applied them when it learned of the removal, and as
/// far as something that counts was built on them. What the removed and readers say about others
/// has no weight. So no device waits for what lies beyond.
package struct Cuts: Hashable, Sendable {
  /// What a participant had applied when it learned that a device takes no part any more.
  package struct Acknowledgement: Hashable, Sendable {
    /// The participant's device, which has signed it.
    package var device: DeviceIdentifier
    /// The client of the removed device.
    package var client: ClientIdentifier
    /// The last number of the client that it had applied; 0 if none.
    package var number: UInt64

    /// Creates an acknowledgement.
    package init(device: DeviceIdentifier, client: ClientIdentifier, number: UInt64) {
      self.device = device
      self.client = client
      self.number = number
    }
  }

  /// A change set that is here, and the change sets of others on which it was built.
  package struct Built: Hashable, Sendable {
    /// The device that has signed it.
    package var device: DeviceIdentifier
    /// The client in whose chain it is.
    package var client: ClientIdentifier
    /// The place in the chain.
    package var number: UInt64
    /// The last number of each other client that its author had applied.
    package var dependencies: [ClientIdentifier: UInt64]

    /// Creates a change set from its parts.
    package init(
      device: DeviceIdentifier, client: ClientIdentifier, number: UInt64,
      dependencies: [ClientIdentifier: UInt64]
    ) {
      self.device = device
      self.client = client
      self.number = number
      self.dependencies = dependencies
    }
  }

  /// The numbers, of the removed clients alone; 0 if nothing counts.
  package private(set) var numbers: [ClientIdentifier: UInt64]

  /// Finds the cuts in one document.
  ///
  /// - Parameters:
  ///   - removed: The clients of devices that take no part any more, or whose grant is void.
  ///   - acknowledgements: What participants had applied. Those of devices that are neither owners
  ///     nor writers now are ignored.
  ///   - built: The change sets that are here. Those of a removed client keep others alive as far
  ///     as they count themselves, if its device was an owner's or a writer's.
  package init(
    removed: Set<ClientIdentifier>, acknowledgements: some Sequence<Acknowledgement>,
    built: some Sequence<Built>, in document: DocumentName, of participants: Participants
  ) {
    var found = Dictionary(uniqueKeysWithValues: removed.map { ($0, UInt64(0)) })
    for acknowledgement in acknowledgements {
      guard let role = participants.role(of: acknowledgement.device, in: document),
        role >= .writer, let before = found[acknowledgement.client]
      else { continue }
      found[acknowledgement.client] = max(before, acknowledgement.number)
    }
    var waiting: [ClientIdentifier: [Built]] = [:]
    var open: [Built] = []
    for set in built where Self.couldWrite(set.device, document, participants) {
      if let cut = found[set.client], set.number > cut {
        waiting[set.client, default: []].append(set)
      } else if found[set.client] != nil
        || participants.role(of: set.device, in: document) != nil
      {
        open.append(set)
      }
    }
    while let set = open.popLast() {
      for (client, number) in set.dependencies {
        guard let before = found[client], number > before else { continue }
        found[client] = number
        let all = waiting[client] ?? []
        open += all.filter { $0.number <= number }
        waiting[client] = all.filter { $0.number > number }
      }
    }
    numbers = found
  }

  private static func couldWrite(
    _ device: DeviceIdentifier, _ document: DocumentName, _ participants: Participants
  ) -> Bool {
    switch participants.standing(of: device, in: document) {
    case .takesPart(let role), .removed(let role), .void(let role): role >= .writer
    case .unknown: false
    }
  }

  /// Returns whether something of a client counts; always, if the client was not removed.
  package func counts(_ number: UInt64, of client: ClientIdentifier) -> Bool {
    numbers[client].map { number <= $0 } ?? true
  }
}
