import CryptoExtras
import SyncModel
import Testing

@testable import SyncSecurity

/// Slots, passphrases and the recovery key. Each scrypt takes a quarter of a second.
@Suite struct SlotTests {
  private static let text = "kibo sade vunu reta poli gizu"

  @Test func passphraseOpensItsSlotHoweverItIsComposed() throws {
    var world = try TestWorld()
    let composed = "Grüße an den Präsidenten: 47 Äpfel, bitte!"
    let slot = try Slot(
      sealing: world.secret,
      for: .passphrase(Passphrase(new: composed, using: &world.generator)), root: world.root,
      using: &world.generator)
    let decomposed = composed.unicodeScalars.reduce(into: "") { text, scalar in
      switch scalar {
      case "ü": text += "u\u{308}"
      case "ä": text += "a\u{308}"
      case "Ä": text += "A\u{308}"
      default: text.unicodeScalars.append(scalar)
      }
    }
    #expect(Array(decomposed.utf8) != Array(composed.utf8))
    let read = try Slot(decoding: slot.encoded())
    #expect(read == slot)
    #expect(
      try Slot.open([read], with: .passphrase(.init(existing: decomposed)), root: world.root)
        == world.secret)
    let error = #expect(throws: SecurityError.self) {
      try Slot.open(
        [read], with: .passphrase(.init(existing: composed + " ")), root: world.root)
    }
    #expect(error?.code == .noSlotOpens)
  }

  @Test func recoveryKeyOpensItsSlotAlone() throws {
    var world = try TestWorld()
    let key = RecoveryKey.random(using: &world.generator)
    let slot = try Slot(
      sealing: world.secret, for: .recoveryKey(key), root: world.root, using: &world.generator)
    #expect(try Slot.open([slot], with: .recoveryKey(key), root: world.root) == world.secret)
    let other = RecoveryKey.random(using: &world.generator)
    #expect(throws: SecurityError.self) {
      try Slot.open([slot], with: .recoveryKey(other), root: world.root)
    }
    // A passphrase is not tried on it.
    #expect(throws: SecurityError.self) {
      try Slot.open([slot], with: .passphrase(.init(existing: Self.text)), root: world.root)
    }
  }

  @Test func secretOfAnotherRootDoesNotCount() throws {
    var world = try TestWorld()
    var other = try TestWorld(seed: 2)
    let key = RecoveryKey.random(using: &world.generator)
    // The provider knows this key, and seals a secret of its own for our root.
    let planted = try Slot(
      sealing: other.secret, for: .recoveryKey(key), root: world.root, using: &other.generator)
    #expect(throws: SecurityError.self) {
      try Slot.open([planted], with: .recoveryKey(key), root: world.root)
    }
    let right = try Slot(
      sealing: world.secret, for: .recoveryKey(key), root: world.root, using: &world.generator)
    #expect(
      try Slot.open([planted, right], with: .recoveryKey(key), root: world.root) == world.secret)
    // Nor does a slot of another root open here.
    let moved = try Slot(
      sealing: world.secret, for: .recoveryKey(key), root: other.root, using: &world.generator)
    #expect(throws: SecurityError.self) {
      try Slot.open([moved], with: .recoveryKey(key), root: world.root)
    }
  }

  @Test func noMoreThanFourSlotsAreTried() throws {
    var world = try TestWorld()
    let key = RecoveryKey.random(using: &world.generator)
    let slots = try (0..<5).map { index in
      try Slot(
        sealing: world.secret,
        for: .recoveryKey(index == 4 ? key : .random(using: &world.generator)), root: world.root,
        using: &world.generator)
    }
    let error = #expect(throws: SecurityError.self) {
      try Slot.open(slots, with: .recoveryKey(key), root: world.root)
    }
    #expect(error?.detail == "4 slots of 5 were tried")
    #expect(
      try Slot.open(Array(slots.dropFirst()), with: .recoveryKey(key), root: world.root)
        == world.secret)
  }

  @Test func noOtherParametersAreAccepted() throws {
    var world = try TestWorld()
    let slot = try Slot(
      sealing: world.secret, for: .recoveryKey(.random(using: &world.generator)),
      root: world.root, using: &world.generator)
    let body = try Envelope.decode(slot.encoded()).body
    func decode(_ parameters: [UInt8]) throws -> Slot {
      try Slot(
        decoding: Envelope(
          type: .keySlot, body: parameters + body.dropFirst(4), compression: .stored
        ).encoded())
    }
    #expect(try decode([2, 0, 0, 0]) == slot)
    #expect(try decode([1, 17, 8, 1]).kind == .passphrase)
    let others: [[UInt8]] = [
      [1, 16, 8, 1], [1, 18, 8, 1], [1, 17, 7, 1], [1, 17, 8, 2], [1, 0, 0, 0], [2, 17, 8, 1],
      [3, 17, 8, 1], [0, 0, 0, 0],
    ]
    for parameters in others {
      #expect(throws: CodecError.self, "\(parameters)") { try decode(parameters) }
    }
    #expect(throws: CodecError.self) {
      try Slot(
        decoding: Envelope(type: .keySlot, body: body + [0], compression: .stored).encoded())
    }
    #expect(throws: CodecError.self) {
      try Slot(
        decoding: Envelope(type: .application, body: body, compression: .stored).encoded())
    }
  }

  // MARK: Passphrases

  @Test func proposalsAreSixWordsThatAreStrongEnough() throws {
    var generator = SeededGenerator(seed: 4)
    var words: Set<Substring> = []
    for _ in 0..<300 {
      let proposal = Passphrase.proposal(using: &generator)
      let parts = proposal.split(separator: " ")
      #expect(parts.count == 6)
      #expect(parts.allSatisfy { $0.count == 4 && $0.prefix(2) != $0.suffix(2) })
      #expect(proposal.utf8.allSatisfy { $0 == 32 || (97...122).contains($0) })
      #expect(throws: Never.self, "\(proposal)") {
        try Passphrase(new: proposal, using: &generator)
      }
      words.formUnion(parts)
    }
    // 1,800 words of 6,320 are nearly all different.
    #expect(words.count > 1400)
  }

  @Test func everyWordIsAsLikelyAsAnyOther() {
    var generator = SeededGenerator(seed: 5)
    var words: [String: Int] = [:]
    for _ in 0..<63_200 { words[Passphrase.word(using: &generator), default: 0] += 1 }
    #expect(words.count > 6310)
    #expect(words.values.max().map { $0 < 35 } == true)
  }

  @Test(arguments: [
    "", "secret", "password123", "passwordpassword", "Tr0ub4dor&3", "12345678901234567890",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjkl",
    "kibo sade kibo sade kibo sade kibo sade", "correct horse battery staple", "Berlin 1989",
    "letmein letmein letmein letmein", "2026-11-28 2026-11-29",
  ])
  func weakPassphraseIsRefusedWithAProposal(text: String) throws {
    var generator = SeededGenerator(seed: 6)
    let error = #expect(throws: SecurityError.self) {
      try Passphrase(new: text, using: &generator)
    }
    #expect(error?.code == .weakPassphrase)
    #expect(error?.remedy.contains("six random words") == true)
    // What was typed is in no output.
    if text.count > 8 { #expect(error.map { "\($0)".contains(text) } == false) }
  }

  @Test(arguments: [
    "kX9#qLw2$Zp7mR4!", "the old bicycle leans on a violet garden wall in march",
    "Über sieben Brücken musst du gehn, sieben dunkle Jahre",
  ])
  func strongPassphraseIsTaken(text: String) throws {
    var generator = SeededGenerator(seed: 6)
    #expect(throws: Never.self) { try Passphrase(new: text, using: &generator) }
  }

  // MARK: The recovery key

  @Test func recoveryKeyIsReadAsItIsTyped() throws {
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<50 {
      let key = RecoveryKey.random(using: &generator)
      #expect(key.text.count == 13 * 5 + 12)
      #expect(try RecoveryKey(key.text) == key)
      #expect(try RecoveryKey(key.text.uppercased().replacing("-", with: " ")) == key)
      #expect(try RecoveryKey(" " + key.text.replacing("-", with: "") + "\n") == key)
      #expect(
        try RecoveryKey(
          key.text.replacing("o", with: "0").replacing("l", with: "1").replacing("b", with: "8"))
          == key)
    }
  }

  @Test func mistypedGroupIsNamed() throws {
    var generator = SeededGenerator(seed: 8)
    var unnoticed = 0
    for _ in 0..<200 {
      let key = RecoveryKey.random(using: &generator)
      let group = generator.below(13)
      var characters = Array(key.text)
      let position = group * 6 + generator.below(5)
      characters[position] = characters[position] == "a" ? "c" : "a"
      do {
        _ = try RecoveryKey(String(characters))
        unnoticed += 1
      } catch let error as SecurityError {
        #expect(error.code == .recoveryKeyMistyped)
        #expect(error.sentence == "Group \(group + 1) of the recovery key is mistyped.")
      }
    }
    // One in 32 slips is not noticed by the group's check.
    #expect(unnoticed < 20)
  }

  @Test func exchangedAndMissingGroupsAreNoticed() throws {
    var generator = SeededGenerator(seed: 9)
    let groups = RecoveryKey.random(using: &generator).text.split(separator: "-").map(String.init)
    var exchanged = groups
    exchanged.swapAt(2, 7)
    let error = #expect(throws: SecurityError.self) {
      try RecoveryKey(exchanged.joined(separator: "-"))
    }
    #expect(error?.sentence == "Groups 3, 8 of the recovery key are mistyped.")
    let short = #expect(throws: SecurityError.self) {
      try RecoveryKey(groups.dropLast().joined(separator: "-"))
    }
    #expect(short?.sentence.contains("60 characters in 12 groups") == true)
    var lacking = groups
    lacking[4].removeLast()
    let group = #expect(throws: SecurityError.self) {
      try RecoveryKey(lacking.joined(separator: "-"))
    }
    #expect(group?.sentence == "Group 5 of the recovery key is mistyped.")
  }

  @Test func secretsAreInNoDescription() throws {
    var world = try TestWorld()
    let device = try DeviceKeys.random(using: &world.generator)
    var text = ""
    dump(device, to: &text)
    dump(world.secret, to: &text)
    dump(Passphrase(existing: Self.text), to: &text)
    text += "\(device) \(world.secret) \(String(reflecting: world.secret))"
    let flat = text.filter { !$0.isWhitespace }
    for secret in [device.signing.seed, device.opening.seed, world.secret.secret] {
      for separator in ["-", ","] {
        #expect(!flat.contains(secret.bytes.map { "\($0)" }.joined(separator: separator)))
      }
    }
    #expect(!text.contains(Self.text))
    #expect(text.contains("(a secret)"))
  }
}
