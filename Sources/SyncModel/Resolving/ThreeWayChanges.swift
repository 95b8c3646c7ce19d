/// The changes of two sequences of tokens against a third one from which both were made, in groups that do not
/// touch each other.
struct ThreeWayChanges {
  /// A part of the base that one side replaced. Either range may be empty.
  struct Change {
    var base: Range<Int>
    var side: Range<Int>
  }

  /// The changes of one side in a group.
  struct Side {
    var changes: [Change] = []
    /// What the side has in place of the group's part of the base.
    var range = 0..<0
    /// The tokens that the side put in place of others, without those of the base that it has still.
    var inserted: [Int] = []

    /// Returns a part of the new tokens, with the part of the base in whose place each of them is.
    fileprivate func pieces(
      _ part: Range<Int>
    ) -> [(base: Range<Int>, tokens: ArraySlice<Int>)] {
      var pieces: [(base: Range<Int>, tokens: ArraySlice<Int>)] = []
      var position = 0
      for change in changes {
        let range = (position..<position + change.side.count).clamped(to: part)
        position += change.side.count
        if !range.isEmpty { pieces.append((change.base, inserted[range])) }
      }
      return pieces
    }
  }

  /// Changes that overlap or touch each other.
  struct Group {
    var base: Range<Int>
    var left = Side()
    var right = Side()

    /// The group with the sides exchanged.
    var swapped: Group { Group(base: base, left: right, right: left) }

    /// Returns the new tokens of both sides. Those that both have in the same order are there once; the others
    /// are in the order of the base. Where both sides have others in one place, `settle` returns those of both;
    /// `nil` if it cannot, which ends the merge.
    func inserted(settle: (ArraySlice<Int>, ArraySlice<Int>) -> [Int]?) -> [Int]? {
      var result: [Int] = []
      var begin = (left: 0, right: 0)
      func add(until end: (left: Int, right: Int)) -> Bool {
        let (lefts, rights) = (begin.left..<end.left, begin.right..<end.right)
        let tokens =
          inOrder(lefts, rights) ?? settle(left.inserted[lefts], right.inserted[rights])
        result += tokens ?? []
        return tokens != nil
      }
      for (position, match) in SequenceDiff(left.inserted, right.inserted).matches.enumerated() {
        guard let match else { continue }
        guard add(until: (position, match)) else { return nil }
        result.append(left.inserted[position])
        begin = (position + 1, match + 1)
      }
      return add(until: (left.inserted.count, right.inserted.count)) ? result : nil
    }

    /// Returns a part of the new tokens of each side in the order of the base; `nil` if both sides have some in one
    /// place.
    private func inOrder(_ lefts: Range<Int>, _ rights: Range<Int>) -> [Int]? {
      if lefts.isEmpty { return Array(right.inserted[rights]) }
      if rights.isEmpty { return Array(left.inserted[lefts]) }
      let pieces = (left.pieces(lefts) + right.pieces(rights)).sorted {
        ($0.base.lowerBound, $0.base.upperBound) < ($1.base.lowerBound, $1.base.upperBound)
      }
      for (piece, next) in zip(pieces, pieces.dropFirst()) {
        let isSamePlace = piece.base.isEmpty && next.base == piece.base
        guard next.base.lowerBound >= piece.base.upperBound, !isSamePlace else { return nil }
      }
      return pieces.flatMap(\.tokens)
    }
  }

  let base: [Int]
  let left: [Int]
  let right: [Int]

  /// Returns the merged tokens. Where both sides have changes, `settle` returns the tokens that take the place of the
  /// group; `nil` if there are none, which ends the merge.
  func merged(_ settle: (Group) throws -> [Int]?) rethrows -> [Int]? {
    var result: [Int] = []
    var position = 0
    for group in groups() {
      result += base[position..<group.base.lowerBound]
      position = group.base.upperBound
      if group.right.changes.isEmpty {
        result += left[group.left.range]
      } else if group.left.changes.isEmpty {
        result += right[group.right.range]
      } else {
        guard let settled = try settle(group) else { return nil }
        result += settled
      }
    }
    return result + base[position...]
  }

  private func groups() -> [Group] {
    var (lefts, rights) = (changes(to: left)[...], changes(to: right)[...])
    var groups: [Group] = []
    // How far positions in the sides are from those in the base.
    var (leftShift, rightShift) = (0, 0)
    while let begin = [lefts.first, rights.first].compactMap({ $0?.base.lowerBound }).min() {
      var group = Group(base: begin..<begin)
      group.left.range = (begin + leftShift)..<(begin + leftShift)
      group.right.range = (begin + rightShift)..<(begin + rightShift)
      while true {
        if let next = lefts.first, next.base.lowerBound <= group.base.upperBound {
          add(lefts.removeFirst(), of: left, to: &group.left, &group.base)
          leftShift = next.side.upperBound - next.base.upperBound
        } else if let next = rights.first, next.base.lowerBound <= group.base.upperBound {
          add(rights.removeFirst(), of: right, to: &group.right, &group.base)
          rightShift = next.side.upperBound - next.base.upperBound
        } else {
          break
        }
      }
      let end = group.base.upperBound
      group.left.range = group.left.range.lowerBound..<(end + leftShift)
      group.right.range = group.right.range.lowerBound..<(end + rightShift)
      groups.append(group)
    }
    return groups
  }

  private func add(
    _ change: Change, of tokens: [Int], to side: inout Side, _ base: inout Range<Int>
  ) {
    side.changes.append(change)
    side.inserted += tokens[change.side]
    base = base.lowerBound..<max(base.upperBound, change.base.upperBound)
  }

  private func changes(to side: [Int]) -> [Change] {
    let matches = SequenceDiff(base, side).matches
    var changes: [Change] = []
    var begin = (base: 0, side: 0)
    for (position, match) in matches.enumerated() {
      guard let match else { continue }
      if position > begin.base || match > begin.side {
        changes.append(Change(base: begin.base..<position, side: begin.side..<match))
      }
      begin = (position + 1, match + 1)
    }
    if begin.base < base.count || begin.side < side.count {
      changes.append(Change(base: begin.base..<base.count, side: begin.side..<side.count))
    }
    return changes
  }
}

extension [Int] {
  /// Returns whether all tokens are in another sequence, in this order.
  func isSubsequence(of other: [Int]) -> Bool {
    var rest = self[...]
    for token in other where rest.first == token { rest.removeFirst() }
    return rest.isEmpty
  }
}
