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

  /// The last change set before the branch; `nil` if the branch begins with the first one.
  private var common: VersionVector.Entry?
  /// The change sets of the branch whose bytes are known.
  private var parts: [Part] = []

  /// Reads the sealed change sets of the former client from the first one on that is not common.
  /// Returns `nil` if there is none.
  ///
  /// Leaves out those whose bytes are nowhere any more. Every member has applied them: else the
  /// store would have kept their bytes.
  init?(
    of sealed: [SealedChangeSet], bytes: (SealedChangeSet) throws -> [UInt8]?,
    standing: (SealedChangeSet) throws -> Incarnation.Standing
  ) throws {
    var isCommon = true
    for sealed in sealed {
      let standing = try standing(sealed)
      isCommon = isCommon && standing == .common
      if isCommon {
        common = VersionVector.Entry(number: sealed.number, hash: sealed.hash)
      } else if let bytes = try bytes(sealed) {
        parts.append(
          Part(changeSet: try ChangeSetCodec.decode(bytes), isKnown: standing != .unknown))
      }
    }
    guard !isCommon, let first = sealed.first?.number else { return nil }
    guard common == nil, first > 1 else { return }
    // Those before were vacuumed.
    guard let header = parts.first?.changeSet.header, let hash = header.previous else { return nil }
    common = VersionVector.Entry(number: header.number - 1, hash: hash)
  }

  /// Rewrites the change sets as those of a new client.
  ///
  /// Those that wait for change sets of other clients (``StoreSession/isAwaitingOthers()``) wait as
  /// change sets of the new client: the tables do not contain them.
  func move(from former: StoreBinding, to new: StoreBinding, _ session: StoreSession) throws {
    let waiting = try session.inbox.numbers(of: former.client)
    try takeBack(former.client, session)
    let author = try session.clients.number(of: new.client)
    let counters = CounterBranch(session: session, former: former.client, new: new.client)
    var previous = common?.hash ?? parts.first?.changeSet.header.previous
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

  /// Takes back the former client's change sets after the common ones, since the other state has
  /// their numbers. Those before that wait for others go on waiting.
  private func takeBack(_ former: ClientIdentifier, _ session: StoreSession) throws {
    let author = try session.clients.number(of: former)
    let last = common?.number ?? 0
    if try session.clients.vector().number(of: former) > last {
      try session.clients.setLast(common, of: former)
    }
    try session.inbox.remove(of: former, after: last)
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
