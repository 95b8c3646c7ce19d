import SyncModel

/// The rewriting of change sets whose numbers another state of their client has used: they become
/// change sets of the store's new client.
///
/// Each row and cell keeps its stamp, with the former client, as an exception. So every device that
/// has merged the change sets in either form, or in both, has the same state. Additions to counters
/// that no other device knows yet become a sum of the new client: see ``CounterBranch``.
struct IncarnationBranch {
  /// One of the change sets.
  struct Part {
    var changeSet: SyncChangeSet
    /// Whether other devices may have it.
    var isKnown: Bool
  }

  /// Returns the sealed change sets of the former client from the first one on that is not common.
  ///
  /// Leaves out those whose bytes are nowhere any more. Every member has applied them: else the
  /// store would have kept their bytes.
  static func parts(
    of sealed: [SealedChangeSet], bytes: (SealedChangeSet) throws -> [UInt8]?,
    standing: (SealedChangeSet) throws -> Incarnation.Standing
  ) throws -> [Part] {
    var parts: [Part] = []
    for sealed in sealed {
      let standing = try standing(sealed)
      guard standing != .common || !parts.isEmpty, let bytes = try bytes(sealed) else { continue }
      parts.append(
        Part(changeSet: try ChangeSetCodec.decode(bytes), isKnown: standing != .unknown))
    }
    return parts
  }

  let session: StoreSession
  let former: StoreBinding
  let new: StoreBinding

  /// Rewrites the change sets, which must be the last ones of the former client.
  ///
  /// Those that wait for change sets of other clients (``StoreSession/isAwaitingOthers()``) wait as
  /// change sets of the new client: the tables do not contain them.
  func move(_ parts: [Part]) throws {
    guard let first = parts.first?.changeSet.header else { return }
    let common = first.previous.flatMap { hash in
      first.number > 1 ? VersionVector.Entry(number: first.number - 1, hash: hash) : nil
    }
    let waiting = try session.inbox.numbers(of: former.client)
    try takeBack(to: common)
    let author = try session.clients.number(of: new.client)
    let counters = CounterBranch(session: session, former: former.client, new: new.client)
    var previous = first.previous
    var isAwaitingOthers = false
    for (index, part) in parts.enumerated() {
      let isWaiting = waiting.contains(part.changeSet.header.number)
      if isWaiting, !isAwaitingOthers {
        // The tables contain the sums up to here.
        try counters.settle()
        isAwaitingOthers = true
      }
      var moved = part.changeSet
      moved.header.client = new.client
      moved.header.number = UInt64(index) + 1
      moved.header.previous = previous
      moved.dependencies[former.client] = common
      moved.tables = try moved.tables.map { changes in
        let kept = changes.keepingStamps(of: former.client)
        return part.isKnown ? kept : try counters.move(kept)
      }
      let bytes = try ChangeSetCodec.encode(moved)
      let entry = VersionVector.Entry(
        number: moved.header.number, hash: ContentHash(of: bytes))
      try session.outbox.add(bytes, as: entry, rowCount: moved.rowCount, of: author)
      try session.ranges.record(
        client: author, number: entry.number, moved.timeRange, isMixed: true)
      if isWaiting {
        try session.inbox.add(
          ReceivedChangeSet(changeSet: moved, hash: entry.hash, bytes: bytes))
      } else {
        try session.history.add(
          client: author, entry: entry, rowCount: moved.rowCount, byteCount: bytes.count,
          at: session.now)
      }
      if !isAwaitingOthers { try session.clients.setLast(entry, of: new.client) }
      previous = entry.hash
    }
    try counters.settle()
  }

  /// Takes back the former client's change sets after `common`, since the other state has their
  /// numbers. Those before that wait for others go on waiting.
  private func takeBack(to common: VersionVector.Entry?) throws {
    let author = try session.clients.number(of: former.client)
    let last = common?.number ?? 0
    if try session.clients.vector().number(of: former.client) > last {
      try session.clients.setLast(common, of: former.client)
    }
    try session.inbox.remove(of: former.client, after: last)
    try session.outbox.remove(of: author, after: Int64(last))
    try session.history.remove(of: author, after: Int64(last))
    try session.ranges.remove(of: author, after: Int64(last))
  }
}

extension TableChanges {
  /// Returns the same changes for another author: each stamp of `author` becomes an exception.
  func keepingStamps(of author: ClientIdentifier) -> TableChanges {
    var named: [Int: [Int?: Stamp]] = [:]
    for exception in exceptions {
      named[exception.row, default: [:]][exception.column] = exception.stamp
    }
    var changes = self
    changes.exceptions = []
    for row in 0..<count {
      let own = Stamp(time: times[row], client: author)
      func add(_ column: Int?, _ stamp: Stamp) {
        changes.exceptions.append(StampException(row: row, column: column, stamp: stamp))
      }
      // An update carries no stamp for the row's existence.
      let existence =
        named[row]?[nil] ?? (actions[row] == RowAction.update.rawValue ? nil : own)
      if let existence { add(nil, existence) }
      for column in shapes[Int(rowShapes[row])] { add(column, named[row]?[column] ?? own) }
    }
    return changes
  }
}
