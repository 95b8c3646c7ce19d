import Foundation

/// What a person types to become an owner of an application.
///
/// The provider of a shared directory can try passphrases for ever, so weak ones are refused.
package struct Passphrase: Hashable, Sendable {
  /// The UTF-8 of the text in the normal form NFC, so that it does not matter how a keyboard
  /// composes letters.
  let secret: Secret

  /// The fewest bits that a passphrase must have by ``estimatedBits(of:)``.
  package static let leastBits = 55.0
  /// The words of a proposed passphrase.
  package static let proposedWordCount = 6

  /// Takes a text that opens a slot which exists already.
  package init(existing text: String) {
    secret = Secret(text.precomposedStringWithCanonicalMapping.utf8)
  }

  /// Takes a text for a new slot.
  ///
  /// Throws ``SecurityError`` with the code `weakPassphrase` if the text is easy to guess; the
  /// remedy proposes another one.
  package init(
    new text: String, using generator: inout some RandomNumberGenerator
  ) throws {
    guard Self.estimatedBits(of: text) >= Self.leastBits else {
      throw SecurityError(
        .weakPassphrase, "This passphrase is easy to guess.",
        remedy: "Take six random words, such as “\(Self.proposal(using: &generator))”.",
        detail: "about \(Int(Self.estimatedBits(of: text))) bits; \(Int(Self.leastBits)) are needed"
      )
    }
    self.init(existing: text)
  }

  // MARK: Proposals

  private static let consonants = Array("bdfghjklmnprstvz")
  private static let vowels = Array("aeiou")

  /// Returns six random words: 75 bits.
  ///
  /// A word has two different syllables of a consonant and a vowel, which makes 6,320 words and
  /// 12.6 bits for each.
  package static func proposal(using generator: inout some RandomNumberGenerator) -> String {
    (0..<proposedWordCount).map { _ in word(using: &generator) }.joined(separator: " ")
  }

  /// Draws one of the words; each is as likely as any other.
  static func word(using generator: inout some RandomNumberGenerator) -> String {
    let syllables = consonants.count * vowels.count
    let first = Int.random(in: 0..<syllables, using: &generator)
    // The second syllable is one of the others.
    let step = Int.random(in: 1..<syllables, using: &generator)
    return syllable(first) + syllable((first + step) % syllables)
  }

  private static func syllable(_ number: Int) -> String {
    String([consonants[number / vowels.count], vowels[number % vowels.count]])
  }

  // MARK: Strength

  /// Parts of passphrases that are tried first: each is worth no more than a few bits.
  private static let common = [
    "password", "passwort", "passphrase", "correct horse battery staple", "letmein", "welcome",
    "iloveyou", "dragon", "monkey", "football", "baseball", "superman", "batman", "sunshine",
    "princess", "shadow", "master", "michael", "jordan", "trustno", "starwars", "whatever",
    "qwerty", "qwertz", "azerty", "asdf", "yxcv", "zxcv", "qazwsx", "abc123", "abcdef", "secret",
    "admin", "login", "hello", "test", "geheim", "hallo", "docsync",
  ]
  private static let commonBits = 5.0

  /// Returns roughly how many bits an attacker has to guess, who tries words, names, dates,
  /// repetitions and rows of keys first. It is an estimate, and rather too low.
  static func estimatedBits(of text: String) -> Double {
    var rest = text.precomposedStringWithCanonicalMapping.lowercased()
    var bits = 0.0
    for part in common {
      let pieces = rest.components(separatedBy: part)
      guard pieces.count > 1 else { continue }
      bits += commonBits
      rest = pieces.joined(separator: " ")
    }
    let isTouched = rest != text.precomposedStringWithCanonicalMapping.lowercased()
    let characters = Array(
      isTouched ? rest : text.precomposedStringWithCanonicalMapping)
    let unit = repeatedUnit(of: characters)
    if unit.count < characters.count { bits += 2 }
    var seen: Set<[Character]> = []
    for index in unit.indices {
      // A run of four that stood before is a repetition.
      if index >= 3 {
        let run = Array(unit[index - 3...index])
        if !seen.insert(run).inserted { continue }
      }
      bits += self.bits(of: unit[index], after: index > 0 ? unit[index - 1] : nil)
    }
    return bits
  }

  /// The shortest beginning of which the whole is a repetition.
  private static func repeatedUnit(of characters: [Character]) -> ArraySlice<Character> {
    for length in 1..<max(2, characters.count)
    where characters.indices.allSatisfy({ characters[$0] == characters[$0 % length] }) {
      return characters.prefix(length)
    }
    return characters[...]
  }

  private static func bits(of character: Character, after before: Character?) -> Double {
    if let before {
      if before == character { return 0.2 }
      if let this = character.asciiValue, let last = before.asciiValue,
        character.isLetter || character.isNumber, abs(Int(this) - Int(last)) == 1
      {
        return 0.5
      }
    }
    if character.isWhitespace { return 1 }
    if character.isNumber { return before?.isNumber == true ? 2 : 3.3 }
    if character.isLetter {
      guard let before, before.isLetter, before.isUppercase || character.isLowercase else {
        return 4.7
      }
      // A letter within a word.
      return 2
    }
    return 4
  }
}
