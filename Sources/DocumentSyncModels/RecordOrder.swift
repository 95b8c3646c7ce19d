/// An order of records in which each comes after those to which it refers. In a circle of references, one comes
/// before another to which it refers.
enum RecordOrder {
  /// - Parameter references: Records, and those to which each refers. References to others do not count.
  static func sorted(_ references: [ModelRecord.ID: [ModelRecord.ID]]) -> [ModelRecord.ID] {
    var sorted: [ModelRecord.ID] = []
    var seen: Set<ModelRecord.ID> = []
    for start in references.keys.sorted() where seen.insert(start).inserted {
      // The path from the start, with the references of each record that are still to be followed.
      var path = [(id: start, rest: (references[start] ?? [])[...])]
      while let last = path.indices.last {
        if let next = path[last].rest.popFirst() {
          if let further = references[next], seen.insert(next).inserted {
            path.append((next, further[...]))
          }
        } else {
          sorted.append(path.removeLast().id)
        }
      }
    }
    return sorted
  }
}
