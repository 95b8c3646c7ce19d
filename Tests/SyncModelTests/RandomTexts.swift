import Foundation

/// Texts of a few words in a few lines, so that much repeats, and edits of them.
struct RandomTexts {
  var generator: SeededGenerator
  let words: [String]

  init(seed: UInt64, words: Int) {
    generator = SeededGenerator(seed: seed)
    self.words = (0..<words).map { "w\($0)" }
  }

  mutating func line() -> String {
    (0..<generator.below(5)).map { _ in words[generator.below(words.count)] }
      .joined(separator: " ")
  }

  mutating func text() -> String {
    (0..<(1 + generator.below(6))).map { _ in line() }.joined(separator: "\n")
  }

  mutating func edited(_ text: String) -> String {
    var lines = text.components(separatedBy: "\n")
    for _ in 0..<generator.below(4) {
      let place = generator.below(lines.count)
      switch generator.below(4) {
      case 0: lines.insert(line(), at: place)
      case 1: if lines.count > 1 { lines.remove(at: place) }
      case 2: lines[place] += " " + words[generator.below(words.count)]
      default:
        var parts = lines[place].components(separatedBy: " ")
        parts[generator.below(parts.count)] = words[generator.below(words.count)]
        lines[place] = parts.joined(separator: " ")
      }
    }
    return lines.joined(separator: "\n")
  }

  mutating func object(depth: Int = 0) -> String {
    let members = (0..<generator.below(4)).map { number in
      "\"\(words[0])\(number)\":"
        + (depth < 2 && generator.below(3) == 0
          ? object(depth: depth + 1) : ["1", "2.0", "[1, 2]", "null"][generator.below(4)])
    }
    return "{" + members.joined(separator: generator.below(2) == 0 ? "," : " ,\n") + "}"
  }
}
