import SyncModel

/// The words of an SQL name, in lower case: `lastMessage_ID` is `last`,
/// `message`, `id`.
struct IdentifierWords: Hashable {
  private(set) var words: [String]

  /// Words that mean "this is a key" without naming its table.
  private static let keyWords: Set<String> = [
    "id", "ids", "fk", "pk", "ref", "key", "row", "rowid", "uid", "oid",
  ]

  init(_ name: SQLName) {
    words = []
    var word = ""
    var isAfterLowercase = false
    for byte in name.text.utf8 {
      let isUppercase = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
      let isLetter = isUppercase || byte >= 0x80 || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte
      let isDigit = UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
      if !isLetter && !isDigit || isUppercase && isAfterLowercase {
        if !word.isEmpty { words.append(word) }
        word = ""
      }
      if isLetter || isDigit {
        // Only letters of ASCII are compared.
        let letter = byte >= 0x80 ? UInt8(ascii: "?") : isUppercase ? byte | 0x20 : byte
        word.append(Character(UnicodeScalar(letter)))
      }
      isAfterLowercase = isLetter && !isUppercase
    }
    if !word.isEmpty { words.append(word) }
  }

  private init(words: [String]) { self.words = words }

  /// The name without the words at its start and end that mark a key.
  var withoutKeyWords: IdentifierWords {
    var rest = words[...]
    while let last = rest.last, Self.keyWords.contains(last) { rest.removeLast() }
    while let first = rest.first, Self.keyWords.contains(first) { rest.removeFirst() }
    // `bookid`, `albumfk`: the key word is part of the last one.
    if let last = rest.last {
      for ending in ["rowid", "id", "fk"] where last.count > ending.count + 2 {
        guard last.hasSuffix(ending) else { continue }
        rest[rest.endIndex - 1] = String(last.dropLast(ending.count))
        break
      }
    }
    return IdentifierWords(words: Array(rest))
  }

  /// Whether one of the words marks a key.
  var namesKey: Bool {
    if words.contains(where: Self.keyWords.contains) { return true }
    // `nid`, `chatid`; not `is_valid`.
    guard let last = words.last, words.count == 1 || !["is", "has"].contains(words[0]) else {
      return false
    }
    return last.count > 2 && last.hasSuffix("id") && !Self.otherWords.contains(last)
  }

  /// Words that end like a key and are not keys.
  private static let otherWords: Set<String> = [
    "android", "grid", "hybrid", "invalid", "liquid", "paid", "pyramid", "solid", "valid", "void",
  ]

  /// The words from each position to the last, joined and in the singular,
  /// the longest first.
  var endings: [String] {
    words.indices.map { start in
      Self.singular(words[start...].joined())
    }
  }

  /// Returns a noun without its plural ending, as far as spelling tells.
  static func singular(_ word: String) -> String {
    if word.hasSuffix("ies"), word.count > 4 { return word.dropLast(3) + "y" }
    for ending in ["sses", "xes", "ches", "shes"] where word.hasSuffix(ending) {
      return String(word.dropLast(2))
    }
    if word.hasSuffix("s"), !word.hasSuffix("ss"), word.count > 2 { return String(word.dropLast()) }
    return word
  }
}
