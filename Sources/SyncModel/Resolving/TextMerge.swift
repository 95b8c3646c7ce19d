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

  /// Texts that are longer together are merged in one attempt, and lines that are longer together as a whole.
  private static let costlyLength = 1 << 18

  /// Returns the merged text; `nil` if the texts cannot be merged.
  static func merged(
    base: [UInt8], left: [UInt8], right: [UInt8], by style: Style,
    checkCancellation: () throws -> Void
  ) rethrows -> [UInt8]? {
    if left == right || right == base { return left }
    if left == base { return right }
    let isCostly = base.count + left.count + right.count > costlyLength
    var merge = TextMerge(style: style)
    return try merge.settled(base, left, right, attempts: isCostly ? 1 : 4, checkCancellation)
  }

  /// Returns a text that stays if it is merged with one of the two sides again.
  ///
  /// Repeated lines can match differently then, and devices that decide one after the other would not
  /// agree.
  private mutating func settled(
    _ base: [UInt8], _ left: [UInt8], _ right: [UInt8], attempts: Int,
    _ checkCancellation: () throws -> Void
  ) rethrows -> [UInt8]? {
    let (left, right) = (names.lines(left), names.lines(right))
    // No text has no lines, so that both sides add theirs.
    let base = base.isEmpty ? [] : names.lines(base)
    var result = try merge(base, left, right, checkCancellation)
    for _ in 0..<attempts {
      let withLeft = try merge(base, result, left, checkCancellation)
      let withRight = try merge(base, result, right, checkCancellation)
      if withLeft == result, withRight == result { return names.text(ofLines: result) }
      result = try merge(base, withLeft, withRight, checkCancellation)
    }
    return nil
  }

  private mutating func merge(
    _ base: [Int], _ left: [Int], _ right: [Int], _ checkCancellation: () throws -> Void
  ) rethrows -> [Int] {
    try checkCancellation()
    let changes = ThreeWayChanges(base: base, left: left, right: right)
    let merged =
      try changes.merged { group in
        try checkCancellation()
        return settle(group, changes)
      } ?? base
    if merged.isEmpty { return names.lines([]) }
    return withoutRepetitions(merged, base, left, right)
  }

  private mutating func settle(
    _ group: ThreeWayChanges.Group, _ changes: ThreeWayChanges
  ) -> [Int] {
    let (left, right) = (group.left.inserted, group.right.inserted)
    if left.isSubsequence(of: right) { return right }
    if right.isSubsequence(of: left) { return left }
    let ordered = names.precedes(right, left) ? group.swapped : group
    if let merged = ordered.inserted(settle: { _, _ in nil }) { return merged }
    if style == .words,
      let lines = mergeWords(
        changes.base[group.base], changes.left[group.left.range],
        changes.right[group.right.range])
    {
      return lines
    }
    return ordered.inserted { [names] one, other in
      Array(names.precedes(other, one) ? other + one : one + other)
    } ?? left + right
  }

  /// Merges lines by words. Returns `nil` if both sides changed the same words differently, or if there are too many.
  private mutating func mergeWords(
    _ base: ArraySlice<Int>, _ left: ArraySlice<Int>, _ right: ArraySlice<Int>
  ) -> [Int]? {
    guard !base.isEmpty, !left.isEmpty, !right.isEmpty else { return nil }
    let texts = [base, left, right].map { names.text(ofLines: Array($0)) }
    guard texts.reduce(0, { $0 + $1.count }) <= Self.costlyLength else { return nil }
    let changes = ThreeWayChanges(
      base: words.words(texts[0]), left: words.words(texts[1]), right: words.words(texts[2]))
    let merged = changes.merged { [words] group in
      let ordered =
        words.precedes(group.right.inserted, group.left.inserted) ? group.swapped : group
      return ordered.inserted { _, _ in nil }
    }
    return merged.map { names.lines(words.text(ofWords: $0)) }
  }

  /// Removes the repetitions of a line that no text has twice: both sides have added or moved it, to different places.
  /// In the style ``Style/lines`` each added line is there once.
  private func withoutRepetitions(
    _ lines: [Int], _ base: [Int], _ left: [Int], _ right: [Int]
  ) -> [Int] {
    let repeated = counts(lines)
    guard repeated.contains(where: { $0 > 1 }) else { return lines }
    let (before, lefts, rights) = (counts(base), counts(left), counts(right))
    var added: Set<Int> = []
    return lines.filter { line in
      let count = max(lefts[line], rights[line])
      guard repeated[line] > 1, isUnique(line, before[line], count) else { return true }
      return added.insert(line).inserted
    }
  }

  private func isUnique(_ line: Int, _ before: Int, _ count: Int) -> Bool {
    switch style {
    case .lines: (before == 0 || before == 1 && count == 1) && !names.parts[line].isEmpty
    case .words: before <= 1 && count == 1 && TokenNames.hasWord(names.parts[line])
    }
  }

  private func counts(_ lines: [Int]) -> [Int] {
    var counts = Array(repeating: 0, count: names.parts.count)
    for line in lines { counts[line] += 1 }
    return counts
  }
}
