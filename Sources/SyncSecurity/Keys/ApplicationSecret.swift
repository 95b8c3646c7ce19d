import Crypto
import SyncModel

/// The secret of an application, of which everything follows that an owner can do. It exists only
/// in slots, and in memory after a passphrase was typed.
package struct ApplicationSecret: Hashable, Sendable {
  /// The 32 bytes.
  let secret: Secret

  /// Wraps 32 bytes.
  init(secret: Secret) { self.secret = secret }

  /// Draws the secret of a new application.
  package static func random(
    using generator: inout some RandomNumberGenerator
  ) -> ApplicationSecret {
    ApplicationSecret(secret: .random(using: &generator))
  }

  /// Draws the secret of a new application from the system's generator.
  package static func random() -> ApplicationSecret {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// Returns the key that signs grants and removals of owners.
  package func enrolmentKey() throws -> SigningKey {
    try SigningKey(seed: Label.enrolmentKey.derive(from: secret))
  }

  /// Returns the key that opens every epoch key.
  package func ownerKey() throws -> OpeningKey {
    try OpeningKey(seed: Label.ownerKey.derive(from: secret))
  }

  /// The key from which the names of the documents' folders follow.
  package var nameKey: NameKey { NameKey(secret: Label.nameKey.derive(from: secret)) }

  /// Returns the public halves of the application's keys.
  package func application() throws -> ApplicationKeys {
    ApplicationKeys(enrolment: try enrolmentKey().publicKey, owner: try ownerKey().publicKey)
  }
}

/// The public keys of an application, which its application file contains.
package struct ApplicationKeys: Hashable, Sendable {
  /// The suite of the application's files. The root fixes it.
  package static let suite: UInt8 = 1

  /// The key that signs grants and removals of owners.
  package let enrolment: VerifyingKey
  /// The key to which every epoch key is sealed.
  package let owner: SealingKey
  /// The application: the hash of the suite and both keys.
  package let root: RootIdentifier

  /// Creates the keys of an application.
  package init(enrolment: VerifyingKey, owner: SealingKey) {
    self.enrolment = enrolment
    self.owner = owner
    root = RootIdentifier(
      bits: Label.root.hashBits([Self.suite], enrolment.bytes, owner.bytes))
  }
}

/// The key from which the names of the documents' folders follow. Owners have it.
package struct NameKey: Hashable, Sendable {
  /// The 32 bytes.
  let secret: Secret

  /// Returns the name of a document's folder, by the identifiers that the user chose.
  package func folderName(ofDocument document: String, in application: String) -> DocumentName {
    let code = HMAC<SHA256>.authenticationCode(
      for: Label.documentName.transcript(Array(application.utf8), Array(document.utf8)),
      using: SymmetricKey(data: secret.bytes))
    let bytes = Array(code)
    return bytes.withUnsafeBytes { buffer in
      DocumentName(
        bits: Bits128(
          high: UInt64(bigEndian: buffer.loadUnaligned(as: UInt64.self)),
          low: UInt64(bigEndian: buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self))))
    }
  }
}
