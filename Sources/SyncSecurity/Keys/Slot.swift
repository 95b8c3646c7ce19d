import Crypto
import CryptoExtras
import SyncModel

/// The application secret, sealed under a passphrase or the recovery key.
package struct Slot: Hashable, Sendable {
  /// What opens a slot. The raw values are those of the format.
  package enum Kind: UInt8, Hashable, Sendable {
    /// Words that a person remembers.
    case passphrase = 1
    /// A key on paper.
    case recoveryKey = 2
  }

  /// What a person has to open a slot.
  package enum Credential: Hashable, Sendable {
    /// The words that the person typed.
    case passphrase(Passphrase)
    /// The key that the person typed.
    case recoveryKey(RecoveryKey)

    /// The kind of slot that it opens.
    package var kind: Kind {
      switch self {
      case .passphrase: .passphrase
      case .recoveryKey: .recoveryKey
      }
    }
  }

  /// What opens the slot.
  package let kind: Kind
  /// 32 random bytes.
  let salt: [UInt8]
  /// The sealed secret and its tag.
  let box: [UInt8]

  /// The most slots that are tried: each costs a quarter of a second, and the provider can add
  /// any number.
  package static let greatestTries = 4

  private static let saltByteCount = 32
  private static let boxByteCount = Secret.byteCount + 16
  /// The parameters of scrypt: 2¹⁷, 8, 1. No others are accepted.
  private static let logarithm: UInt8 = 17
  private static let blockSize: UInt8 = 8
  private static let parallelism: UInt8 = 1

  /// Seals the secret of an application.
  package init(
    sealing secret: ApplicationSecret, for credential: Credential, root: RootIdentifier,
    using generator: inout some RandomNumberGenerator
  ) throws {
    kind = credential.kind
    salt = Secret.random(using: &generator).bytes
    let sealed = try ChaChaPoly.seal(
      secret.secret.bytes, using: try Self.key(of: credential, salt: salt), nonce: .zero(),
      authenticating: Self.head(kind, salt) + root.bits.bytes)
    box = Array(sealed.ciphertext + sealed.tag)
  }

  // MARK: Opening

  /// Opens the first slot of the right kind that yields the secret of the application, and tries at
  /// most ``greatestTries``.
  ///
  /// What a slot yields counts only if the root follows from it, so that nothing else has to vouch
  /// for a slot. Throws ``SecurityError`` with the code `noSlotOpens`.
  package static func open(
    _ slots: [Slot], with credential: Credential, root: RootIdentifier
  ) throws -> ApplicationSecret {
    let candidates = slots.filter { $0.kind == credential.kind }.prefix(greatestTries)
    for slot in candidates {
      if let secret = try slot.secret(by: credential, root: root) { return secret }
    }
    throw SecurityError(
      .noSlotOpens,
      credential.kind == .passphrase
        ? "The passphrase does not open the application."
        : "The recovery key does not open the application.",
      remedy: "Check that it is the one of this application, and type it again.",
      detail: "\(candidates.count) slots of \(slots.count) were tried")
  }

  private func secret(
    by credential: Credential, root: RootIdentifier
  ) throws -> ApplicationSecret? {
    let key = try Self.key(of: credential, salt: salt)
    let opened: Secret
    do {
      let sealed = try ChaChaPoly.SealedBox(
        nonce: .zero(), ciphertext: box.dropLast(16), tag: box.suffix(16))
      opened = Secret(
        try ChaChaPoly.open(
          sealed, using: key, authenticating: Self.head(kind, salt) + root.bits.bytes))
    } catch is CryptoKitError {
      return nil
    }
    let secret = ApplicationSecret(secret: opened)
    return try secret.application().root == root ? secret : nil
  }

  private static func key(of credential: Credential, salt: [UInt8]) throws -> SymmetricKey {
    switch credential {
    case .passphrase(let passphrase):
      // The memory of scrypt is 128 · N · r bytes, and a little more.
      let stretched = try KDF.Scrypt.deriveKey(
        from: passphrase.secret.bytes, salt: Label.passphraseSlot.transcript(salt),
        outputByteCount: Secret.byteCount, rounds: 1 << Int(logarithm),
        blockSize: Int(blockSize), parallelism: Int(parallelism), maxMemory: 160 << 20)
      return stretched
    case .recoveryKey(let key):
      return SymmetricKey(data: Label.recoverySlot.derive(from: key.secret, salt: salt).bytes)
    }
  }

  // MARK: Bytes

  private static func head(_ kind: Kind, _ salt: [UInt8]) -> [UInt8] {
    let parameters = kind == .passphrase ? [logarithm, blockSize, parallelism] : [0, 0, 0]
    return [kind.rawValue] + parameters + salt
  }

  /// Encodes the slot as the bytes of its file.
  package func encoded() throws -> [UInt8] {
    try Envelope(
      type: .keySlot, body: Self.head(kind, salt) + box, compression: .stored
    ).encoded(limits: .small)
  }

  /// Decodes the bytes of a file; accepts only the one set of parameters. Throws ``CodecError``.
  package init(decoding bytes: [UInt8]) throws {
    let envelope = try Envelope.decode(bytes, expecting: .keySlot, limits: .small)
    var reader = CanonicalReader(envelope.body, name: "slot")
    guard let kind = Kind(rawValue: try reader.byte()) else {
      throw CodecError(.unknownCriticalField, "slot: kind", at: 0)
    }
    let parameters = try reader.take(3)
    salt = try reader.take(Self.saltByteCount)
    box = try reader.take(Self.boxByteCount)
    try reader.expectEnd()
    self.kind = kind
    guard Array(Self.head(kind, salt)[1...3]) == parameters else {
      throw CodecError(.unknownCriticalField, "slot: parameters", at: 1)
    }
    guard try encoded() == bytes else { throw CodecError(.malformed, "slot: envelope") }
  }
}
