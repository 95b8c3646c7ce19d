/// Random choices from a seed.
struct Dice: Sendable {
  private(set) var random: SeededRandom

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  mutating func word() -> UInt64 { random.next() }

  mutating func below(_ bound: Int) -> Int { bound < 2 ? 0 : Int(random.next() % UInt64(bound)) }

  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  mutating func pick<Element>(_ values: [Element]) -> Element { values[below(values.count)] }

  /// Picks a value by weights.
  mutating func pick<Element>(weighted values: [(weight: Int, value: Element)]) -> Element {
    var rest = below(values.reduce(0) { $0 + $1.weight })
    for (weight, value) in values {
      if rest < weight { return value }
      rest -= weight
    }
    return values[values.count - 1].value
  }

  mutating func shuffled<Element>(_ values: [Element]) -> [Element] {
    values.shuffled(using: &random)
  }
}
