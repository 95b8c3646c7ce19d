/// The three-way merge of texts, by lines and then by words.
///
/// It does not depend on which text is left and which is right. Merging the result with one of the two texts
/// again gives the result.
///
/// A part of the base that one side alone changed is as that side has it. A part that both changed is
///
/// 1. as the side has it whose new lines include those of the other: so a changed line wins over its deletion, and what both
///    wrote is there once;
/// 2. or what both wrote, in the order of the base, if the changes only touch each other;
/// 3. or merged by words (``Style/words``);
/// 4. or the new lines of both, the lesser ones in the order of bytes first.
struct TextMerge {
  enum Style {
    /// Lines that both changed are merged by words, if all words that both changed can be merged.
    case words
    /// A line is one as a whole. Of the lines that were added, equal ones are there once, apart from empty ones.
    case lines
  }

  private let style: Style
  private var names = TokenNames()
  private var words = TokenNames()

  private init(style: Style) { self.style = style }

  /// Texts that are longer together are not merged.
  static let greatestLength = 32 << 20
  /// Texts that are longer together are merged in one attempt.
  private static let costlyLength = 1 << 18

  /// Returns the merged text; `nil` if the texts cannot be merged.
  static func merged(
    base: [UInt8], left: [UInt8], right: [UInt8], by style: Style
  ) -> [UInt8]? {
    if left == right || right == base { return left }
    if left == base { return right }
    let length = base.count + left.count + right.count
    guard length <= greatestLength else { return nil }
    var merge = TextMerge(style: style)
    return merge.settled(base, left, right, attempts: length > costlyLength ? 1 : 4)
  }

  /// Returns a text that stays if it is merged with one of the two sides again.
  ///
  /// Repeated lines can match differently then, and devices that decide one after the other would not
  /// agree.
  private mutating func settled(
    _ base: [UInt8], _ left: [UInt8], _ right: [UInt8], attempts: Int
  ) -> [UInt8]? {
    let (left, right) = (names.lines(left), names.lines(right))
    // No text has no lines, so that both sides add theirs.
    let base = base.isEmpty ? [] : names.lines(base)
    var result = merge(base, left, right)
    for _ in 0..<attempts {
      let withLeft = merge(base, result, left)
      let withRight = merge(base, result, right)
      if withLeft == result, withRight == result { return names.text(ofLines: result) }
      result = merge(base, withLeft, withRight)
    }
    return nil
  }

  private mutating func merge(_ base: [Int], _ left: [Int], _ right: [Int]) -> [Int] {
    let changes = ThreeWayChanges(base: base, left: left, right: right)
    let merged = changes.merged { settle($0, changes) } ?? base
    if merged.isEmpty { return names.lines([]) }
    return style == .lines ? withoutRepetitions(merged, base) : merged
  }

  private mutating func settle(
    _ group: ThreeWayChanges.Group, _ changes: ThreeWayChanges
  ) -> [Int] {
    let (left, right) = (group.left.inserted, group.right.inserted)
    if left.isSubsequence(of: right) { return right }
    if right.isSubsequence(of: left) { return left }
    if let inOrder = group.insertedInOrder(changes.left, changes.right) { return inOrder }
    if style == .words,
      let lines = mergeWords(
        changes.base[group.base], changes.left[group.left.range],
        changes.right[group.right.range])
    {
      return lines
    }
    return names.precedes(right, left) ? both(right, left) : both(left, right)
  }

  /// Merges lines by words. Returns `nil` if both sides changed the same words differently.
  private mutating func mergeWords(
    _ base: ArraySlice<Int>, _ left: ArraySlice<Int>, _ right: ArraySlice<Int>
  ) -> [Int]? {
    guard !base.isEmpty, !left.isEmpty, !right.isEmpty else { return nil }
    let changes = ThreeWayChanges(
      base: words.words(names.text(ofLines: Array(base))),
      left: words.words(names.text(ofLines: Array(left))),
      right: words.words(names.text(ofLines: Array(right))))
    let merged = changes.merged { group in
      if Self.includes(group.left, group.right) { return group.left.inserted }
      if Self.includes(group.right, group.left) { return group.right.inserted }
      return group.insertedInOrder(changes.left, changes.right)
    }
    return merged.map { names.lines(words.text(ofWords: $0)) }
  }

  /// Returns whether a side has removed and written all that the other has.
  private static func includes(
    _ side: ThreeWayChanges.Side, _ other: ThreeWayChanges.Side
  ) -> Bool {
    other.inserted.isSubsequence(of: side.inserted)
      && other.changes.allSatisfy { change in
        side.changes.contains {
          $0.base.lowerBound <= change.base.lowerBound
            && change.base.upperBound <= $0.base.upperBound
        }
      }
  }

  /// Returns the lines of both sequences, common ones once.
  private func both(_ first: [Int], _ second: [Int]) -> [Int] {
    var result: [Int] = []
    var begin = (first: 0, second: 0)
    func add(_ one: ArraySlice<Int>, _ other: ArraySlice<Int>) {
      result += names.precedes(other, one) ? other + one : one + other
    }
    for (position, match) in SequenceDiff(first, second).matches.enumerated() {
      guard let match else { continue }
      add(first[begin.first..<position], second[begin.second..<match])
      result.append(first[position])
      begin = (position + 1, match + 1)
    }
    add(first[begin.first...], second[begin.second...])
    return result
  }

  private func withoutRepetitions(_ lines: [Int], _ base: [Int]) -> [Int] {
    let known = Set(base)
    var added: Set<Int> = []
    return lines.filter {
      known.contains($0) || names.parts[$0].isEmpty || added.insert($0).inserted
    }
  }
}
