/// The three-way merge of objects in JSON, by member.
///
/// It does not depend on which text is left and which is right. Merging the result with one of the two texts
/// again gives the result.
///
/// A member that one side alone changed is as that side has it. Of a member that both changed, objects are merged
/// by member; a change wins over a removal; otherwise the greater value stays: of two numbers by their size, of others
/// by their text, byte by byte. Members of the base stay in its order; those that were added follow, in the order of
/// their names.
struct JSONMerge {
  private var numbers = JSONNumbers()

  /// Returns the merged text; `nil` if one of the two texts contains no object.
  static func merged(
    base: [UInt8], left: [UInt8], right: [UInt8], checkCancellation: () throws -> Void
  ) rethrows -> [UInt8]? {
    if left == right || right == base { return left }
    if left == base { return right }
    var merge = JSONMerge()
    guard let result = merge.once(base, left, right) else { return nil }
    for side in [left, right] {
      try checkCancellation()
      guard merge.once(base, result, side) == result else { return nil }
    }
    return result
  }

  private mutating func once(_ base: [UInt8], _ left: [UInt8], _ right: [UInt8]) -> [UInt8]? {
    guard let leftTree = JSONTree(left, &numbers), case .object = leftTree,
      let rightTree = JSONTree(right, &numbers), case .object = rightTree
    else { return nil }
    if leftTree.isSame(as: rightTree) { return Self.lesser(left, right) }
    guard let tree = merged(JSONTree(base, &numbers), leftTree, rightTree) else { return nil }
    return tree.isSame(as: leftTree) ? left : tree.isSame(as: rightTree) ? right : tree.text
  }

  /// Merges the values of a member; `nil` is a member that is not there.
  private mutating func merged(
    _ base: JSONTree?, _ left: JSONTree?, _ right: JSONTree?
  ) -> JSONTree? {
    guard let left, let right else {
      guard let side = left ?? right else { return nil }
      return base.map(side.isSame) ?? false ? nil : side
    }
    if left.isSame(as: right) {
      return Self.lesser(left.text, right.text) == left.text ? left : right
    }
    if let base, left.isSame(as: base) { return right }
    if let base, right.isSame(as: base) { return left }
    guard case .object(let leftMembers, _) = left, case .object(let rightMembers, _) = right else {
      return Self.isLess(left.text, right.text) ? right : left
    }
    var baseMembers: [JSONTree.Member] = []
    if case .object(let members, _) = base { baseMembers = members }
    let result = numbers.object(merged(baseMembers, leftMembers, rightMembers))
    return result.isSame(as: left) ? left : result.isSame(as: right) ? right : result
  }

  private mutating func merged(
    _ base: [JSONTree.Member], _ left: [JSONTree.Member], _ right: [JSONTree.Member]
  ) -> [JSONTree.Member] {
    let (before, lefts, rights) = (
      JSONTree.values(base), JSONTree.values(left), JSONTree.values(right)
    )
    var added: [Int: JSONTree.Member] = [:]
    for member in left + right where before[member.number] == nil {
      let known = added[member.number] ?? member
      added[member.number] = known
      added[member.number]?.writtenName = Self.lesser(known.writtenName, member.writtenName)
    }
    let names = base + added.values.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    return names.compactMap { name in
      let number = name.number
      return merged(before[number], lefts[number], rights[number]).map { value in
        var member = name
        member.value = value
        return member
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
