/// Text that compresses about as English does, 2.6 to 1 with zlib: sentences
/// of words drawn from a vocabulary by Zipf's law, where some words like to
/// follow each other.
struct Corpus {
  /// The number of distinct words.
  static let vocabularySize = 2_500
  /// Every word is followed in half of all cases by one of so many others.
  private static let successorCount = 3

  private let words: [[UInt8]]
  /// `cumulative[r]` is the weight of the words of rank 0…r.
  private let cumulative: [Double]
  /// For each word those that often come next.
  private let successors: [[Int]]

  /// The vocabulary is the same for every benchmark.
  init() {
    var generator = SeededGenerator(seed: 0x0000_C0FF_EE00)
    var known = Set(Self.commonWords)
    var vocabulary = Self.commonWords
    while vocabulary.count < Self.vocabularySize {
      let word = Self.inventedWord(using: &generator)
      if known.insert(word).inserted { vocabulary.append(word) }
    }
    words = vocabulary.map { Array($0.utf8) }
    var sum = 0.0
    let cumulative = vocabulary.indices.map { rank in
      sum += 1 / (Double(rank) + 2.7)
      return sum
    }
    self.cumulative = cumulative
    successors = vocabulary.indices.map { _ in
      (0..<Self.successorCount).map { _ in Self.draw(from: cumulative, using: &generator) }
    }
  }

  /// Appends a few words without a full stop.
  func appendTitle(to text: inout [UInt8], using generator: inout SeededGenerator) {
    let count = Int.random(in: 2...5, using: &generator)
    var previous: Int?
    for position in 0..<count {
      if position > 0 { text.append(UInt8(ascii: " ")) }
      previous = appendWord(to: &text, after: previous, using: &generator)
    }
  }

  /// Appends sentences until there are at least `length` bytes more.
  func appendSentences(
    ofLength length: Int, to text: inout [UInt8], using generator: inout SeededGenerator
  ) {
    let end = text.count + length
    while text.count < end {
      let count = Int.random(in: 4...16, using: &generator)
      var previous: Int?
      for position in 0..<count where text.count < end {
        previous = appendWord(to: &text, after: previous, using: &generator)
        if position > 2, position < count - 1, generator.next() % 12 == 0 {
          text.append(UInt8(ascii: ","))
        }
        if position < count - 1 { text.append(UInt8(ascii: " ")) }
      }
      text.append(UInt8(ascii: "."))
      if text.count < end { text.append(UInt8(ascii: " ")) }
    }
  }

  /// Appends a word that may follow `previous`; gives its rank.
  private func appendWord(
    to text: inout [UInt8], after previous: Int?, using generator: inout SeededGenerator
  ) -> Int {
    let choice = Int(generator.next() % 100)
    let rank =
      if let previous, choice < 50 {
        successors[previous][choice % Self.successorCount]
      } else {
        Self.draw(from: cumulative, using: &generator)
      }
    let start = text.count
    text.append(contentsOf: words[rank])
    if previous == nil { text[start] &-= 32 }
    return rank
  }

  /// Draws a rank with the weights whose running sums are given.
  private static func draw(
    from cumulative: [Double], using generator: inout SeededGenerator
  ) -> Int {
    let point = Double(generator.next() >> 11) * 0x1p-53 * cumulative[cumulative.count - 1]
    var low = 0
    var high = cumulative.count - 1
    while low < high {
      let middle = (low + high) / 2
      if cumulative[middle] < point { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private static func inventedWord(using generator: inout SeededGenerator) -> String {
    let syllables = [1, 2, 2, 2, 3, 3][Int(generator.next() % 6)]
    var word = ""
    for _ in 0..<syllables {
      word += onsets[Int(generator.next() % UInt64(onsets.count))]
      word += vowels[Int(generator.next() % UInt64(vowels.count))]
      word += codas[Int(generator.next() % UInt64(codas.count))]
    }
    return word + endings[Int(generator.next() % UInt64(endings.count))]
  }

  private static let onsets = [
    "b", "br", "c", "ch", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n",
    "p", "pl", "pr", "r", "s", "sh", "st", "str", "t", "th", "tr", "v", "w",
  ]
  private static let vowels = ["a", "e", "i", "o", "u", "ea", "ee", "ai", "ou", "oo"]
  private static let codas = ["", "", "n", "r", "l", "t", "s", "ck", "m", "nd", "st", "ll"]
  private static let endings = ["", "", "", "s", "ed", "ing", "er", "ly", "tion", "ness"]

  private static let commonWords = """
    the of and to a in is it that was for on with as be at by this have from or had not are but
    what all were when we there can an your which their said if will each about how up out them
    then she many some so these would other into has more her two like him see time could no make
    than first been its who now people my made over did down only way find use may water long
    little very after words called just where most know get through back much go good new write
    our me man too any day same right look think also around another came come work three word
    must because does part even place well such here take why help put different away again off
    went old number great tell men say small every found still between name should home big give
    air line set own under read last never us left end along while might next sound below saw
    something thought both few those always show large often together asked house world going
    want school important until form food keep children feet land side without boy once animal
    life enough took four head above kind began almost live page got earth need far hand high
    year mother light country father let night picture being study second soon story since white
    ever paper hard near sentence better best across during today however sure knew it's try told
    young sun thing whole hear example heard several change answer room sea against top turned
    learn point city play toward five himself usually money seen car morning list meeting note
    order plan letter call week month office garden train bread coffee idea question reason email
    """.split(whereSeparator: \.isWhitespace).map(String.init)
}
