import SyncDirectory
import SyncModel
import SyncStore

extension ChangeFetch {
  /// Plans nothing after the last change sets of retired clients that count.
  func limit(_ cuts: [ClientIdentifier: Members.Cut]) {
    for (client, cut) in cuts where client != header.client {
      let author = authors[client, default: Author()]
      switch cut {
      case .stopped(let others):
        authors[client, default: author].limit = author.has
        guard author.announced > author.has else { continue }
        let who = others.filter { $0 != header.client }.map(\.description)
        wait(
          client, author.has + 1, .retiring,
          "its author is being retired, and not all members have published how much of it they have applied"
            + (who.isEmpty ? "" : ": " + who.joined(separator: ", ")), path: nil)
      case .settled(let number):
        // The store does not wait for later ones: the author publishes them
        // again as a new client.
        authors[client, default: author].limit = number
        authors[client]?.announced = number
      }
    }
  }

  /// Plans what to read of a client: numbers without a gap, each with the names
  /// that claim it. Notes why the plan ends.
  func plan(_ client: ClientIdentifier) throws -> [ChangeFetchQueue.Item] {
    guard let author = authors[client], let listed = author.listed else { return [] }
    var claims: [UInt64: [ChangeSetName]] = [:]
    var segments: [SegmentName] = []
    var last = author.announced
    for name in listed {
      last = max(last, name.numbers.upperBound)
      switch name {
      case .changeSet(let name): claims[name.number, default: []].append(name)
      case .segment(let name): segments.append(name)
      }
    }
    segments.sort {
      ($0.numbers.count, $0.hash.description) > ($1.numbers.count, $1.hash.description)
    }
    last = min(last, author.limit)
    var items: [ChangeFetchQueue.Item] = []
    var number = author.has
    while number < last, items.count < Self.plannedCount {
      number += 1
      let names = claims[number, default: []].sorted()
      guard !names.isEmpty || segments.contains(where: { $0.numbers.contains(number) }) else {
        try noteMissing(client, number, isNext: items.isEmpty)
        break
      }
      items.append(
        ChangeFetchQueue.Item(
          client: client, number: number, names: names, segments: segments))
    }
    return items
  }

  /// Takes back the changes from a number on, if another file with a lower hash
  /// than the applied one claims it: two states of one client have published.
  /// The applied content stays; it comes again from the new client that the
  /// author of the applied file becomes.
  func takeBackFork(of client: ClientIdentifier) throws {
    guard let author = authors[client], let listed = author.listed, author.has > 0 else { return }
    var claims: [UInt64: [ChangeSetName]] = [:]
    for case .changeSet(let name) in listed where name.number <= author.has {
      claims[name.number, default: []].append(name)
    }
    guard let first = claims.keys.min() else { return }
    // Reads the hash before the first as well, from which its successor
    // continues.
    let hashes = try store.hashes(of: client, from: max(first, 2) - 1)
    for (number, names) in claims.sorted(by: { $0.key < $1.key }) {
      guard let name = names.min(by: { $0.hash.description < $1.hash.description }),
        let applied = hashes[number],
        name.hash.description < HashFragment(applied).description
      else { continue }
      let item = ChangeFetchQueue.Item(client: client, number: number, names: [name])
      let before = hashes[number - 1]
      let outcome = try ChangeFileReader(
        files, header: header, layout: layout, segments: segments
      ).read([item])
      guard let intact = outcome.first?.intact.first else {
        unclear.insert(client)
        continue
      }
      guard number == 1 || before.map({ $0 == intact.changeSet.header.previous }) ?? false
      else { continue }
      context.environment.logger.notice("change set \(number) of \(client) is another now")
      let entry = before.map { VersionVector.Entry(number: number - 1, hash: $0) }
      try noteBranch(of: client, through: author.has)
      try store.takeBack(client, to: entry)
      waiting = try store.waiting()
      authors[client]?.has = number - 1
      authors[client]?.applied = entry
      authors[client]?.lastHash = before
      return
    }
  }

  /// Notes that a branch of a former client of this store does not count any
  /// more. Devices that have not applied it get it from this store.
  private func noteBranch(of client: ClientIdentifier, through number: UInt64) throws {
    var ancestors = try records.ancestors()
    guard ancestors.clients.contains(client) else { return }
    ancestors.takenBack = (ancestors.takenBack ?? [:]).merging(
      [client.description: number], uniquingKeysWith: max)
    ancestors.branches?[client.description] = nil
    try records.keep(ancestors)
  }

  /// Notes that a number has no file: it has not arrived, or was vacuumed.
  private func noteMissing(
    _ client: ClientIdentifier, _ number: UInt64, isNext: Bool
  ) throws {
    guard try isNext && lowestKept(client) > number else {
      return wait(
        client, number, .notArrived,
        "announced, and its file is not in the shared directory yet",
        path: layout.syncChanges(of: client))
    }
    gap = gap ?? (client, number)
    wait(
      client, number, .clearedAway,
      "it was removed, and this store does not have it", path: layout.syncChanges(of: client))
  }
}
