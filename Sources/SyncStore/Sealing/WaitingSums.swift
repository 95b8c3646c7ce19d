import SyncModel

/// The sums of this client's additions to the counters of a table in own change sets that wait for
/// those of other clients (``StoreSession/isAwaitingOthers()``).
///
/// The table does not contain them, and a later sum of a client replaces its earlier ones. So an
/// addition that is sealed meanwhile continues from the sum that waits.
struct WaitingSums {
  private let sums: [Place: Counter.Sum]

  /// A counter since it was set.
  private struct Place: Hashable {
    var row: RowIdentity
    var column: Int
    var since: Stamp
  }

  init(of access: TableAccess, _ session: StoreSession) throws {
    var sums: [Place: Counter.Sum] = [:]
    if try !access.table.counters.isEmpty && session.isAwaitingOthers() {
      try session.inbox.forEach(of: session.ownClient) { bytes in
        for changes in try ChangeSetCodec.decode(bytes).tables
        where session.schema.table(wireName: changes.table)?.id == access.table.id {
          try Self.collect(changes, of: session.ownClient, access, into: &sums)
        }
      }
    }
    self.sums = sums
  }

  /// Returns the last sum of a counter since a value was set; `nil` if none waits.
  func sum(of row: RowIdentity, column: Int, since stamp: Stamp) -> Counter.Sum? {
    sums[Place(row: row, column: column, since: stamp)]
  }

  /// Whether no sum waits.
  var isEmpty: Bool { sums.isEmpty }

  private static func collect(
    _ changes: TableChanges, of client: ClientIdentifier, _ access: TableAccess,
    into sums: inout [Place: Counter.Sum]
  ) throws {
    guard access.table.knowsRows(as: changes) else { return }
    let counters = changes.columns.map { name in
      access.table.counters.first { access.table.columns[$0].wireName == name }
    }
    var stamps: [Int: [Int: Stamp]] = [:]
    for exception in changes.exceptions {
      guard let column = exception.column else { continue }
      stamps[exception.row, default: [:]][column] = exception.stamp
    }
    var cursors = [Int](repeating: 0, count: changes.columns.count)
    for row in 0..<changes.count {
      for index in changes.shapes[Int(changes.rowShapes[row])] {
        let cell = cursors[index]
        cursors[index] += 1
        guard let column = counters[index],
          case .added(let value, _, let since) = CounterValue(changes.cells[index][cell])
        else { continue }
        let stamp = stamps[row]?[index] ?? Stamp(time: changes.times[row], client: client)
        guard stamp.client == client else { continue }
        let place = Place(row: access.identity(of: row, in: changes), column: column, since: since)
        let sum = Counter.Sum(value, at: stamp.time)
        if sums[place].map({ $0.precedes(sum) }) ?? true { sums[place] = sum }
      }
    }
  }
}
