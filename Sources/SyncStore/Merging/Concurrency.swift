import GRDB
import SyncModel

/// The changes that the author of a change set had not seen when the change set was sealed.
///
/// No cell records the change set in which it came. The store knows only the least and the greatest
/// time of each change set, so a stamp counts as unseen if its time lies within a change set of its
/// author that the dependencies do not contain. If a clock was set back, the times of two change
/// sets of one client can overlap. Then too many changes count as unseen, never too few.
struct Concurrency {
  /// The times of unseen change sets, by client.
  private let unseen: [Int32: [ClosedRange<UInt64>]]
  /// The times of unseen change sets that have stamps of clients other than
  /// their authors.
  private let mixed: [ClosedRange<UInt64>]
  /// The edits that no change set has carried, so that no other device has seen them, by table.
  private let held: [Int: HeldEdits.OfTable]

  /// The value with which nothing is concurrent.
  static let none = Concurrency(unseen: [:], mixed: [], held: [:])

  private init(
    unseen: [Int32: [ClosedRange<UInt64>]], mixed: [ClosedRange<UInt64>],
    held: [Int: HeldEdits.OfTable]
  ) {
    self.held = held
    self.unseen = unseen
    self.mixed = mixed
  }

  /// Collects the changes that this store has applied and that the author of a change set with
  /// these dependencies had not seen.
  ///
  /// - Parameter countsOwn: Whether this client's own change sets count too.
  init(
    author: Int32, dependencies: VersionVector, session: StoreSession, countsOwn: Bool = true
  ) throws {
    var unseen: [Int32: [ClosedRange<UInt64>]] = [:]
    let ownHead = try session.ownHead()?.number ?? 0
    var ahead: [(client: Int32, seen: Int64, number: Int64)] = []
    for (client, applied) in try session.clients.lastNumbers(and: session.own) {
      // Sealed edits are shown even if they do not count as applied yet.
      let number = client == session.own ? Int64(clamping: ownHead) : applied
      let seen = Int64(
        clamping: dependencies.number(of: session.clients.client(client)))
      guard countsOwn || client != session.own else { continue }
      if client != author, seen < number { ahead.append((client, seen, number)) }
    }
    var mixed: [ClosedRange<UInt64>] = []
    for (client, seen, number) in ahead {
      unseen[client] = try session.ranges.times(of: client, after: seen, through: number)
      mixed += try session.ranges.mixedTimes(of: client, after: seen, through: number)
    }
    self.unseen = unseen
    self.mixed = mixed
    held = countsOwn && author != session.own ? try session.heldEdits().byTable(session) : [:]
  }

  /// Whether anything can be concurrent.
  var isPossible: Bool { !unseen.isEmpty || !held.isEmpty }

  /// Returns whether the author may not have seen the change of a cell, or of a row's existence,
  /// with this stamp.
  func isConcurrent(_ stamp: LocalStamp, of row: RowKey, column: Int? = nil) -> Bool {
    isConcurrent(stamp) || isHeld(stamp, of: row, column: column)
  }

  /// Returns whether no change set has carried the change of a cell, or of a row's existence.
  func isHeld(_ stamp: LocalStamp, of row: RowKey, column: Int? = nil) -> Bool {
    // The store may have been another client when it made them.
    guard let held = held[row.table], held.times.contains(stamp.time) else { return false }
    guard let column else { return held.existences.contains(row.identity) }
    return held.cells[row.identity]?.contains(column) ?? false
  }

  /// Returns whether no change set has carried some edit of a row.
  func mayHold(_ row: @autoclosure () -> RowKey) -> Bool {
    guard !held.isEmpty else { return false }
    let row = row()
    guard let edits = held[row.table] else { return false }
    return edits.existences.contains(row.identity) || edits.cells[row.identity] != nil
  }

  /// Returns whether the author may not have seen the change with this stamp, if a change set has
  /// carried it.
  func isConcurrent(_ stamp: LocalStamp) -> Bool {
    if let ranges = unseen[stamp.client], ranges.contains(where: { $0.contains(stamp.time) }) {
      return true
    }
    return mixed.contains { $0.contains(stamp.time) }
  }
}
