/// The tokens that two sequences have in common, in the order of both.
///
/// Tokens that occur once in both sequences are matched first; Myers' algorithm matches the rest between
/// them. The work is linear in the number of tokens: where two long sequences differ too much, nothing is
/// matched.
struct SequenceDiff {
  /// For each position of the first sequence the position of the equal token in the second one; `nil` if
  /// there is none.
  private(set) var matches: [Int?]
  private let first: [Int]
  private let second: [Int]
  /// How often each token occurs in the part that is being matched, and where.
  private var counts: [Count]
  /// How many steps may still be taken.
  private var steps: Int

  private struct Count {
    var inFirst: Int32 = 0
    var inSecond: Int32 = 0
    var position: Int32 = 0
  }

  /// A part of both sequences.
  private struct Part {
    var first: Range<Int>
    var second: Range<Int>
    /// How many times it was divided.
    var depth: Int
  }

  private static let greatestDepth = 8
  private static let greatestDistance = 1000

  init(_ first: [Int], _ second: [Int]) {
    self.first = first
    self.second = second
    matches = Array(repeating: nil, count: first.count)
    counts = Array(repeating: Count(), count: max(first.max() ?? 0, second.max() ?? 0) + 1)
    steps = 10_000 + 32 * (first.count + second.count)
    var parts = [Part(first: first.indices, second: second.indices, depth: 0)]
    while let part = parts.popLast() {
      guard let rest = matchEnds(part) else { continue }
      let anchors = rest.depth < Self.greatestDepth ? anchors(rest) : []
      if anchors.isEmpty {
        matchByDistance(rest)
      } else {
        parts += divide(rest, at: anchors)
      }
    }
    moveToEnd()
  }

  /// Moves insertions and removals as far to the end as equal tokens allow: of equal tokens in a row, the last ones
  /// count as inserted or removed.
  private mutating func moveToEnd() {
    var next = (first: 0, second: 0)
    for position in matches.indices {
      guard var match = matches[position] else { continue }
      var place = position
      if place == next.first, second[next.second] == first[position] {
        match = next.second
      } else if match == next.second, first[next.first] == first[position] {
        place = next.first
      }
      matches[position] = nil
      matches[place] = match
      next = (place + 1, match + 1)
    }
  }

  /// Matches the equal tokens at both ends. Returns the part between them; `nil` if one side is empty there.
  private mutating func matchEnds(_ part: Part) -> Part? {
    var part = part
    while let one = part.first.first, let other = part.second.first, first[one] == second[other] {
      matches[one] = other
      part.first.removeFirst()
      part.second.removeFirst()
    }
    while let one = part.first.last, let other = part.second.last, first[one] == second[other] {
      matches[one] = other
      part.first.removeLast()
      part.second.removeLast()
    }
    return part.first.isEmpty || part.second.isEmpty ? nil : part
  }

  /// Returns the positions of tokens that occur once in both sides of a part: the most of them that have
  /// the same order in both.
  private mutating func anchors(_ part: Part) -> [(first: Int, second: Int)] {
    for position in part.first { counts[first[position]].inFirst += 1 }
    for position in part.second {
      counts[second[position]].inSecond += 1
      counts[second[position]].position = Int32(position)
    }
    let pairs = part.first.compactMap { position -> (first: Int, second: Int)? in
      let count = counts[first[position]]
      guard count.inFirst == 1, count.inSecond == 1 else { return nil }
      return (position, Int(count.position))
    }
    for position in part.first { counts[first[position]] = Count() }
    for position in part.second { counts[second[position]] = Count() }
    return Self.longestAscending(pairs)
  }

  /// Returns the longest subsequence whose second positions ascend.
  private static func longestAscending(
    _ pairs: [(first: Int, second: Int)]
  ) -> [(first: Int, second: Int)] {
    // The index of the last pair of the best subsequence of each length.
    var ends: [Int] = []
    var before: [Int?] = []
    for (index, pair) in pairs.enumerated() {
      var low = 0
      var high = ends.count
      while low < high {
        let middle = (low + high) / 2
        if pairs[ends[middle]].second < pair.second { low = middle + 1 } else { high = middle }
      }
      before.append(low > 0 ? ends[low - 1] : nil)
      if low < ends.count { ends[low] = index } else { ends.append(index) }
    }
    var result: [(first: Int, second: Int)] = []
    var next = ends.last
    while let index = next {
      result.append(pairs[index])
      next = before[index]
    }
    return result.reversed()
  }

  private mutating func divide(
    _ part: Part, at anchors: [(first: Int, second: Int)]
  ) -> [Part] {
    var parts: [Part] = []
    var begin = (first: part.first.lowerBound, second: part.second.lowerBound)
    for anchor in anchors {
      matches[anchor.first] = anchor.second
      parts.append(
        Part(
          first: begin.first..<anchor.first, second: begin.second..<anchor.second,
          depth: part.depth + 1))
      begin = (anchor.first + 1, anchor.second + 1)
    }
    parts.append(
      Part(
        first: begin.first..<part.first.upperBound, second: begin.second..<part.second.upperBound,
        depth: part.depth + 1))
    return parts
  }

  /// Matches the longest common subsequence (E. Myers, An O(ND) Difference Algorithm, 1986), or nothing if
  /// that takes too many steps.
  private mutating func matchByDistance(_ part: Part) {
    let positions = commonPositions(part)
    let one = positions.first.map { first[$0] }
    let other = positions.second.map { second[$0] }
    let limit = min(one.count + other.count, Self.greatestDistance)
    var farthest = Array(repeating: 0, count: 2 * limit + 3)
    let middle = limit + 1
    var rounds: [[Int32]] = []
    for distance in 0...limit {
      rounds.append(
        farthest[(middle - distance - 1)...(middle + distance + 1)].map(Int32.init))
      for diagonal in stride(from: -distance, through: distance, by: 2) {
        let isDown =
          diagonal == -distance
          || diagonal != distance
            && farthest[middle + diagonal - 1] < farthest[middle + diagonal + 1]
        var x = isDown ? farthest[middle + diagonal + 1] : farthest[middle + diagonal - 1] + 1
        let begin = x
        while x < one.count, x - diagonal < other.count, one[x] == other[x - diagonal] { x += 1 }
        farthest[middle + diagonal] = x
        steps -= 1 + x - begin
        if x >= one.count, x - diagonal >= other.count {
          for (x, y) in follow(rounds, from: (one.count, other.count)) {
            matches[positions.first[x]] = positions.second[y]
          }
          return
        }
      }
      if steps < 0 { return }
    }
  }

  /// Returns the positions of the tokens that are in both sides of a part: only these can match.
  private mutating func commonPositions(_ part: Part) -> (first: [Int], second: [Int]) {
    for position in part.first { counts[first[position]].inFirst = 1 }
    let inSecond = part.second.filter { counts[second[$0]].inFirst > 0 }
    for position in inSecond { counts[second[position]].inSecond = 1 }
    let inFirst = part.first.filter { counts[first[$0]].inSecond > 0 }
    for position in part.first { counts[first[position]] = Count() }
    return (inFirst, inSecond)
  }

  /// Returns the matches of the path that ends where both sides end.
  private func follow(
    _ rounds: [[Int32]], from end: (x: Int, y: Int)
  ) -> [(x: Int, y: Int)] {
    var found: [(x: Int, y: Int)] = []
    var (x, y) = end
    for (distance, farthest) in rounds.enumerated().reversed() {
      let diagonal = x - y
      let middle = distance + 1
      let isDown =
        diagonal == -distance
        || diagonal != distance
          && farthest[middle + diagonal - 1] < farthest[middle + diagonal + 1]
      let former = isDown ? diagonal + 1 : diagonal - 1
      // The first round begins in the corner, not on a path.
      let begin = distance == 0 ? 0 : Int(farthest[middle + former])
      let stop = distance == 0 ? 0 : isDown ? begin : begin + 1
      while x > stop {
        x -= 1
        y -= 1
        found.append((x, y))
      }
      x = begin
      y = distance == 0 ? 0 : begin - former
    }
    return found
  }
}
