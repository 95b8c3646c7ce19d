/// The three-way merge of objects in JSON, by member.
///
/// It does not depend on which text is left and which is right. Merging the result with one of the two texts
/// again gives the result.
///
/// A member that one side alone changed is as that side has it. Of a member that both changed, objects are merged
/// by member; a change wins over a removal; otherwise the greater value stays: of two numbers by their size, of others
/// by their text, byte by byte. Members of the base stay in its order; those that were added follow, in the order of
/// their names.
enum JSONMerge {
  /// Returns the merged text; `nil` if one of the two texts contains no object.
  static func merged(base: [UInt8], left: [UInt8], right: [UInt8]) -> [UInt8]? {
    if left == right || right == base { return left }
    if left == base { return right }
    guard let result = mergedOnce(base, left, right), mergedOnce(base, result, left) == result,
      mergedOnce(base, result, right) == result
    else { return nil }
    return result
  }

  private static func mergedOnce(_ base: [UInt8], _ left: [UInt8], _ right: [UInt8]) -> [UInt8]? {
    guard let leftTree = JSONTree(left), case .object = leftTree, let rightTree = JSONTree(right),
      case .object = rightTree
    else { return nil }
    if leftTree.isSame(as: rightTree) { return lesser(left, right) }
    guard let tree = merged(JSONTree(base), leftTree, rightTree) else { return nil }
    return tree.isSame(as: leftTree) ? left : tree.isSame(as: rightTree) ? right : tree.text
  }

  /// Merges the values of a member; `nil` is a member that is not there.
  private static func merged(
    _ base: JSONTree?, _ left: JSONTree?, _ right: JSONTree?
  ) -> JSONTree? {
    guard let left, let right else {
      guard let side = left ?? right else { return nil }
      return base.map(side.isSame) ?? false ? nil : side
    }
    if left.isSame(as: right) {
      return lesser(left.text, right.text) == left.text ? left : right
    }
    if let base, left.isSame(as: base) { return right }
    if let base, right.isSame(as: base) { return left }
    guard case .object(let leftMembers) = left, case .object(let rightMembers) = right else {
      return isLess(left.text, right.text) ? right : left
    }
    var baseMembers: [JSONTree.Member] = []
    if case .object(let members) = base { baseMembers = members }
    let result = JSONTree.object(merged(baseMembers, leftMembers, rightMembers))
    return result.isSame(as: left) ? left : result.isSame(as: right) ? right : result
  }

  private static func merged(
    _ base: [JSONTree.Member], _ left: [JSONTree.Member], _ right: [JSONTree.Member]
  ) -> [JSONTree.Member] {
    let values = [base, left, right].map(JSONTree.values)
    let added = Dictionary(
      (left + right).filter { values[0][$0.name] == nil }.map { ($0.name, $0.writtenName) },
      uniquingKeysWith: lesser)
    let names =
      base.map { ($0.name, $0.writtenName) }
      + added.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { ($0.key, $0.value) }
    return names.compactMap { name, written in
      merged(values[0][name], values[1][name], values[2][name]).map {
        JSONTree.Member(name: name, writtenName: written, value: $0)
      }
    }
  }

  private static func lesser(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    right.lexicographicallyPrecedes(left) ? right : left
  }

  /// Returns whether a value is less than another: of two numbers by their size, of others by their text.
  private static func isLess(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    if let leftNumber = Double(String(decoding: left, as: UTF8.self)),
      let rightNumber = Double(String(decoding: right, as: UTF8.self)), leftNumber != rightNumber
    {
      return leftNumber < rightNumber
    }
    return left.lexicographicallyPrecedes(right)
  }
}
