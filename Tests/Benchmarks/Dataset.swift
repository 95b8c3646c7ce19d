/// The rows and every edit of the workloads, made once from a seed, so that
/// all subjects in all rounds do the same work and none of it is measured.
final class Dataset {
  /// A row of the table of notes. Its text lies in ``Dataset/text``: the
  /// identifier, the title, the body.
  struct Note {
    var start: Int
    var titleLength: Int
    var bodyLength: Int
    var rating: Int64
    var edited: Int64

    /// 36 bytes: a random UUID.
    var id: Range<Int> { start..<(start + 36) }
    var title: Range<Int> { id.upperBound..<(id.upperBound + titleLength) }
    var body: Range<Int> { title.upperBound..<(title.upperBound + bodyLength) }
  }

  /// A new title for a row, in ``Dataset/text``.
  struct Retitling {
    var row: Int
    var title: Range<Int>
    var edited: Int64
  }

  /// A new rating for a row.
  struct Rerating {
    var row: Int
    var rating: Int64
    var edited: Int64
  }

  /// The contents of all text.
  let text: [UInt8]
  /// W1, in order.
  let notes: [Note]
  /// W2, in order; `edited` stays as it is.
  let ratings: [Rerating]
  /// W3, in order.
  let deletions: [Int]
  /// W4, in order.
  let titles: [Retitling]
  /// W5, in order, for each device; no two edits have the same time.
  let conflicts: [Device: [Rerating]]

  /// Makes `count` rows and their edits.
  init(rows count: Int, seed: UInt64) {
    var source = NoteSource(seed: seed)
    var text: [UInt8] = []
    text.reserveCapacity(count * 280)
    var notes: [Note] = []
    notes.reserveCapacity(count)
    for _ in 0..<count { notes.append(source.append(to: &text)) }

    var generator = SeededGenerator(seed: seed ^ 0x5EED)
    func changed(_ rating: Int64) -> Int64 {
      (rating + Int64.random(in: 1...4, using: &generator)) % 5
    }
    var current = notes.map(\.rating)
    let order = Array(notes.indices).shuffled(using: &generator)
    ratings = order.map { row in
      current[row] = changed(current[row])
      return Rerating(row: row, rating: current[row], edited: notes[row].edited)
    }

    let shuffled = Array(notes.indices).shuffled(using: &generator)
    deletions = Array(shuffled.prefix(count / 5))
    let survivors = shuffled.dropFirst(count / 5)

    // Edits of one sitting: the clock runs on by up to a minute each.
    var now = NoteSource.lastEdited
    titles = survivors.shuffled(using: &generator).prefix(count / 10).map { row in
      let start = text.count
      source.corpus.appendTitle(to: &text, using: &generator)
      now += Int64.random(in: 1...60_000, using: &generator)
      return Retitling(row: row, title: start..<text.count, edited: now)
    }

    let contested = Array(survivors.shuffled(using: &generator).prefix(count / 5))
    var conflicts: [Device: [Rerating]] = [:]
    for device in Device.allCases {
      conflicts[device] = contested.shuffled(using: &generator).map { row in
        // One device has the even times and the other the odd ones.
        let time = now + 2 * Int64.random(in: 1...1_000_000_000, using: &generator)
        return Rerating(
          row: row, rating: changed(current[row]), edited: device == .first ? time & ~1 : time | 1)
      }
    }
    self.conflicts = conflicts
    self.notes = notes
    self.text = text
  }
}

/// Makes the rows of the table of notes one after the other.
struct NoteSource {
  /// Later than every row's time, in milliseconds since 1970.
  static let lastEdited: Int64 = 1_767_225_600_000

  let corpus = Corpus()
  private var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  /// Appends the text of one more row to `text`.
  mutating func append(to text: inout [UInt8]) -> Dataset.Note {
    let start = text.count
    appendIdentifier(to: &text)
    corpus.appendTitle(to: &text, using: &generator)
    let titleLength = text.count - start - 36
    corpus.appendSentences(
      ofLength: Int.random(in: 140...250, using: &generator), to: &text, using: &generator)
    return Dataset.Note(
      start: start, titleLength: titleLength, bodyLength: text.count - start - 36 - titleLength,
      rating: Int64.random(in: 0...4, using: &generator),
      edited: Self.lastEdited - Int64.random(in: 1...31_536_000_000, using: &generator))
  }

  /// A UUID of version 4 in lower case.
  private mutating func appendIdentifier(to text: inout [UInt8]) {
    let digits = Array("0123456789abcdef".utf8)
    var words = [generator.next(), generator.next()]
    words[0] = words[0] & ~0xF000 | 0x4000
    words[1] = words[1] & ~(3 << 62) | 1 << 63
    for (half, word) in words.enumerated() {
      for nibble in 0..<16 {
        if [8, 12, 16, 20].contains(half * 16 + nibble) { text.append(UInt8(ascii: "-")) }
        text.append(digits[Int(word >> UInt64(60 - 4 * nibble) & 15)])
      }
    }
  }
}
