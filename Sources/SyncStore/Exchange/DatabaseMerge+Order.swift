import SyncModel

/// The order in which tables are merged.
extension DatabaseMerge {
  /// Returns the tables in groups. The tables of a group refer to one another, directly or through
  /// others; a table in no circle is alone. Each group comes after all other tables to which one of
  /// its tables refers: where their rows are is known before any row of the group is merged.
  static func circles(
    _ tables: [TableSchema], _ references: [Int: [RowReference]]
  ) -> [[TableSchema]] {
    let reachable = reachableTables(references)
    var result: [[TableSchema]] = []
    var seen: Set<Int> = []
    func visit(_ table: TableSchema) {
      guard !seen.contains(table.id) else { return }
      let circle = tables.filter { other in
        other.id == table.id
          || reachable[table.id]?.contains(other.id) ?? false
            && reachable[other.id]?.contains(table.id) ?? false
      }
      seen.formUnion(circle.map(\.id))
      for member in circle {
        for reference in references[member.id] ?? [] { visit(reference.parent) }
      }
      result.append(circle)
    }
    for table in tables { visit(table) }
    return result
  }

  /// Returns the tables of groups that refer to themselves, directly or through others.
  static func circularTables(
    _ circles: [[TableSchema]], _ references: [Int: [RowReference]]
  ) -> Set<Int> {
    let circular = circles.filter { circle in
      circle.contains { table in
        circle.count > 1 || (references[table.id] ?? []).contains { $0.parent.id == table.id }
      }
    }
    return Set(circular.flatMap { $0.map(\.id) })
  }

  /// Returns, for each table, those to which it refers, directly or through others.
  private static func reachableTables(_ references: [Int: [RowReference]]) -> [Int: Set<Int>] {
    var reachable = references.mapValues { Set($0.map(\.parent.id)) }
    var isGrowing = true
    while isGrowing {
      isGrowing = false
      for (table, before) in reachable {
        let after = before.union(before.flatMap { reachable[$0] ?? [] })
        if after.count > before.count {
          reachable[table] = after
          isGrowing = true
        }
      }
    }
    return reachable
  }
}
