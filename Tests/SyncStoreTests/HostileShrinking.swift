import SyncModel

@testable import SyncStore

/// Makes files that show a problem fewer and smaller, as long as they show it.
struct HostileShrinking {
  typealias Delivery = HostileFleet.Delivery

  /// What is wrong has to stay of this kind.
  let kind: String
  let trial: ([Delivery]) throws -> HostileFleet.Outcome

  func shrink(_ deliveries: [Delivery]) throws -> [Delivery] {
    var deliveries = try dropFiles(deliveries)
    for index in deliveries.indices where deliveries[index].author == nil {
      while let smaller = try smaller(deliveries, index) { deliveries = smaller }
    }
    return deliveries
  }

  private func isShown(_ deliveries: [Delivery]) throws -> Bool {
    try trial(deliveries).problems.contains { $0.kind == kind }
  }

  /// Half of the files, a quarter of them, and so on, down to single ones.
  private func dropFiles(_ deliveries: [Delivery]) throws -> [Delivery] {
    var rest = deliveries
    var length = max(1, rest.count / 2)
    while true {
      var start = 0
      var isChanged = false
      while start < rest.count {
        var fewer = rest
        fewer.removeSubrange(start..<min(rest.count, start + length))
        if try isShown(fewer) {
          rest = fewer
          isChanged = true
        } else {
          start += length
        }
      }
      if length == 1, !isChanged { return rest }
      length = max(1, length / 2)
    }
  }

  /// The files with less in one of them; `nil` if it needs everything.
  private func smaller(_ deliveries: [Delivery], _ index: Int) throws -> [Delivery]? {
    for set in Self.smaller(deliveries[index].file.changeSet) {
      guard let file = try HostileFleet.file(set) else { continue }
      var fewer = deliveries
      fewer[index].file = file
      if try isShown(fewer) { return fewer }
    }
    return nil
  }

  private static func smaller(_ set: SyncChangeSet) -> [SyncChangeSet] {
    var found: [SyncChangeSet] = []
    if !set.dependencies.entries.isEmpty {
      var fewer = set
      fewer.dependencies = VersionVector()
      found.append(fewer)
    }
    for index in set.tables.indices {
      var fewer = set
      fewer.tables.remove(at: index)
      found.append(fewer)
    }
    for index in set.tables.indices {
      found += smaller(LooseChanges(set.tables[index])).map { table in
        var fewer = set
        fewer.tables[index] = table.changes
        return fewer
      }
    }
    return found
  }

  private static func smaller(_ table: LooseChanges) -> [LooseChanges] {
    var found: [LooseChanges] = []
    func add(_ change: (inout LooseChanges) -> Void) {
      var fewer = table
      change(&fewer)
      found.append(fewer)
    }
    for row in table.rows.indices { add { $0.rows.remove(at: row) } }
    for row in table.rows.indices {
      for cell in table.rows[row].cells.indices {
        let column = table.rows[row].cells[cell].column
        add {
          $0.rows[row].cells.remove(at: cell)
          $0.rows[row].stamps[column] = nil
        }
      }
      for column in table.rows[row].stamps.keys { add { $0.rows[row].stamps[column] = nil } }
      if table.rows[row].destination != nil { add { $0.rows[row].destination = nil } }
    }
    return found
  }
}
