import Foundation
import SyncModel
import Testing

/// Three devices that merge what each has made of one text, in any order.
@Suite struct ThreeTextsTests {
  private static let orders = [
    [0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0],
  ]

  /// Returns all results: the last device decides about the text of the first two, or about two texts of which each has
  /// a change of the first one.
  private func results(
    _ function: ShippedFunction, _ base: String, _ texts: [String]
  ) -> [String?] {
    func merge(_ left: String, _ right: String) -> String? {
      let value = function.value(base: .text(base), local: .text(left), remote: .text(right))
      guard case .text(let bytes) = value else { return nil }
      return String(decoding: bytes, as: UTF8.self)
    }
    return Self.orders.flatMap { order -> [String?] in
      let (one, two, three) = (texts[order[0]], texts[order[1]], texts[order[2]])
      guard let both = merge(one, two), let other = merge(one, three) else { return [nil] }
      return [merge(both, three), merge(both, other)]
    }
  }

  /// Draws lines and words that are all different.
  private struct Fresh {
    var generator: SeededGenerator
    private var count = 0

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    mutating func word() -> String {
      count += 1
      return "w\(count)"
    }

    mutating func words() -> [String] { (0..<5).map { _ in word() } }
  }

  /// What the devices change.
  enum Places: CaseIterable {
    /// Lines with an unchanged line between them are replaced, removed, or followed by new ones.
    case lines
    /// Lines next to each other are replaced by one line each, or followed by a new one.
    case neighbors
    /// Each device changes words of its own in the same lines.
    case words
  }

  @Test(arguments: [ShippedFunction.mergeText, .unionOfLines], Places.allCases)
  func changesOfDifferentPlacesGiveOneTextInAnyOrder(function: ShippedFunction, places: Places) {
    guard function == .mergeText || places != .words else { return }
    var fresh = Fresh(seed: 5)
    for _ in 0..<100 {
      let base = (0..<(1 + fresh.generator.below(9))).map { _ in fresh.words() }
      var texts = Array(repeating: base.map { [$0.joined(separator: " ")] }, count: 3)
      for (place, line) in base.enumerated() {
        let text = line.joined(separator: " ")
        let device = fresh.generator.below(4)
        switch places {
        case .words:
          for device in 0..<3 where fresh.generator.below(2) == 0 {
            var words = line
            words[2 * device] = fresh.word()
            texts[device][place] = [words.joined(separator: " ")]
          }
        case .lines where place % 2 == 0 && device < 3:
          texts[device][place] =
            [[], [fresh.word()], [text, fresh.word()], [fresh.word(), fresh.word()]][
              fresh.generator.below(4)]
        case .neighbors where device < 3:
          texts[device][place] = [[fresh.word()], [text, fresh.word()]][fresh.generator.below(2)]
        default: break
        }
      }
      let found = Set(
        results(
          function, base.map { $0.joined(separator: " ") }.joined(separator: "\n"),
          texts.map { $0.flatMap(\.self).joined(separator: "\n") }))
      #expect(found.count == 1 && !found.contains(nil), "\(base): \(texts) becomes \(found)")
    }
  }

  @Test(arguments: [ShippedFunction.mergeText, .unionOfLines], [2, 10, 1000])
  func noLineIsRepeated(function: ShippedFunction, words: Int) {
    var random = RandomTexts(seed: UInt64(words), words: words)
    var merged = 0
    for _ in 0..<150 {
      let base = random.text()
      let texts = (0..<3).map { _ in random.edited(base) }
      let counts = ([base] + texts).map(Self.counts)
      let once = Set(counts.flatMap(\.keys)).filter { line in
        line.contains("w") && counts.allSatisfy { $0[line, default: 0] <= 1 }
      }
      for result in results(function, base, texts).compactMap(\.self) {
        merged += 1
        let found = Self.counts(result)
        for line in once where found[line, default: 0] > 1 {
          // Words of several lines can make it.
          guard counts.contains(where: { $0[line] != nil }) else { continue }
          Issue.record("\(line): \(base), \(texts) becomes \(result)")
        }
      }
    }
    #expect(merged > 150 * 12 * 6 / 10)
  }

  private static func counts(_ text: String) -> [String: Int] {
    Dictionary(text.components(separatedBy: "\n").map { ($0, 1) }, uniquingKeysWith: +)
  }

  @Test func objectsGiveOneObjectInAnyOrder() {
    var random = RandomTexts(seed: 4, words: 2)
    for _ in 0..<300 {
      // In one form, so that the text is the same and not only the values.
      let texts = (0..<4).map { _ in
        random.object().filter { !$0.isWhitespace }
      }
      let found = Set(results(.mergeJSON, texts[0], Array(texts[1...])))
      #expect(found.count == 1 && !found.contains(nil), "\(texts) becomes \(found)")
    }
  }

  @Test(arguments: [ShippedFunction.max, .min])
  func oneValueIsChosenInAnyOrder(function: ShippedFunction) {
    var random = RandomTexts(seed: 6, words: 3)
    for _ in 0..<100 {
      let texts = (0..<3).map { _ in random.line() }
      #expect(Set(results(function, random.line(), texts)).count == 1)
    }
  }
}
