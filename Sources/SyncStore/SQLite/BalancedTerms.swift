extension [String] {
  /// Joins SQL terms in a tree: SQLite limits the depth of an expression to 1,000.
  func balanced(by joint: String) -> String {
    guard count > 8 else { return joined(separator: " \(joint) ") }
    let middle = count / 2
    return "(\(Array(self[..<middle]).balanced(by: joint))) \(joint) "
      + "(\(Array(self[middle...]).balanced(by: joint)))"
  }
}
