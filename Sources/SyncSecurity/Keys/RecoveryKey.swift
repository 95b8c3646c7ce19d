import SyncModel

/// A key of 32 bytes on paper, which opens a slot when the passphrase is forgotten.
///
/// Its text has 13 groups of five characters: four of base 32, and one that checks the group and
/// its place.
package struct RecoveryKey: Hashable, Sendable {
  /// The 32 bytes.
  let secret: Secret

  private static let groupCount = 13
  private static let groupLength = 4

  /// Draws a new key.
  package static func random(using generator: inout some RandomNumberGenerator) -> RecoveryKey {
    RecoveryKey(secret: .random(using: &generator))
  }

  /// Draws a new key from the system's generator.
  package static func random() -> RecoveryKey {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// Wraps 32 bytes.
  init(secret: Secret) { self.secret = secret }

  /// The text that a person keeps: it is as secret as the key.
  package var text: String {
    let characters = Array(Base32.encode(secret.bytes))
    return (0..<Self.groupCount).map { index in
      let start = index * Self.groupLength
      let group = String(characters[start..<start + Self.groupLength])
      return group + Self.check(of: group, at: index)
    }.joined(separator: "-")
  }

  /// Reads ``text`` as a person types it: capital letters, spaces and hyphens do not matter, and
  /// `0`, `1` and `8`, which no key contains, stand for `o`, `l` and `b`.
  ///
  /// Throws ``SecurityError`` with the code `recoveryKeyMistyped`, which names the groups.
  package init(_ text: String) throws {
    let groups = try Self.groups(in: text)
    let wrong = groups.indices.filter { index in
      let group = groups[index]
      return group.count != Self.groupLength + 1
        || Self.check(of: String(group.prefix(Self.groupLength)), at: index)
          != String(group.suffix(1))
    }
    guard wrong.isEmpty else { throw Self.mistyped(groups: wrong.map { $0 + 1 }) }
    let characters = groups.map { $0.prefix(Self.groupLength) }.joined()
    guard let bytes = Base32.decode(characters), bytes.count == Secret.byteCount else {
      throw Self.mistyped(groups: [Self.groupCount])
    }
    secret = Secret(bytes)
  }

  /// The groups as they are typed; without separators, every five characters.
  private static func groups(in text: String) throws -> [String] {
    let cleaned = text.lowercased().map { character -> Character in
      switch character {
      case "0": "o"
      case "1": "l"
      case "8": "b"
      default: character
      }
    }
    let typed = cleaned.split { $0 == "-" || $0.isWhitespace }.map { String($0) }
    if typed.count == groupCount { return typed }
    let all = typed.joined()
    guard all.count == groupCount * (groupLength + 1) else {
      throw SecurityError(
        .recoveryKeyMistyped,
        "A recovery key has \(groupCount) groups of \(groupLength + 1) characters; this one has "
          + "\(all.count) characters in \(typed.count) groups.",
        remedy: "Type the whole key, group by group.")
    }
    let characters = Array(all)
    return stride(from: 0, to: characters.count, by: groupLength + 1).map {
      String(characters[$0..<$0 + groupLength + 1])
    }
  }

  private static func mistyped(groups: [Int]) -> SecurityError {
    let list = groups.map(String.init).joined(separator: ", ")
    return SecurityError(
      .recoveryKeyMistyped,
      groups.count == 1
        ? "Group \(list) of the recovery key is mistyped."
        : "Groups \(list) of the recovery key are mistyped.",
      remedy: "Compare with the paper and type again.")
  }

  private static func check(of group: String, at index: Int) -> String {
    let hash = Label.recoveryGroup.hash([UInt8(index)], Array(group.utf8))
    return String(Base32.encode(hash.prefix(1)).prefix(1))
  }
}
