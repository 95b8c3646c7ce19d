import Crypto
import Foundation
import SyncModel

/// A private X-Wing key (ML-KEM-768 with X25519), to which keys are sealed by HPKE.
///
/// On Apple's systems X-Wing exists from release 26 on. Older ones cannot take part, and get no
/// weaker suite.
package struct OpeningKey: Hashable, Sendable {
  /// The seed of 32 bytes, from which the key follows.
  let seed: Secret
  /// The public half.
  package let publicKey: SealingKey

  /// Makes the key of a seed of 32 bytes.
  init(seed: Secret) throws {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      throw SecurityError.systemTooOld
    }
    let key = try XWingMLKEM768X25519.PrivateKey(
      seedRepresentation: seed.bytes, publicKey: nil)
    self.seed = seed
    publicKey = SealingKey(unchecked: Array(key.publicKey.rawRepresentation))
  }

  /// Opens what ``SealingKey/seal(_:info:)`` sealed with the same information.
  func open(_ box: SealedKey, info: [UInt8]) throws -> Secret {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      throw SecurityError.systemTooOld
    }
    do {
      let key = try XWingMLKEM768X25519.PrivateKey(
        seedRepresentation: seed.bytes, publicKey: nil)
      var recipient = try HPKE.Recipient(
        privateKey: key, ciphersuite: .XWingMLKEM768X25519_SHA256_AES_GCM_256, info: Data(info),
        encapsulatedKey: Data(box.encapsulated))
      return Secret(try recipient.open(box.ciphertext))
    } catch {
      throw SecurityError.sealingDamaged("\(error)")
    }
  }
}

/// A public X-Wing key.
package struct SealingKey: Hashable, Sendable {
  /// The length of a key, in bytes.
  static let byteCount = 1216

  /// The 1216 bytes.
  package let bytes: [UInt8]

  /// Wraps 1216 bytes; `nil` for any other length.
  package init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  fileprivate init(unchecked bytes: [UInt8]) { self.bytes = bytes }

  /// Seals 32 bytes, so that only the private half opens them, and only with the same information.
  func seal(_ secret: Secret, info: [UInt8]) throws -> SealedKey {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      throw SecurityError.systemTooOld
    }
    let key = try XWingMLKEM768X25519.PublicKey(rawRepresentation: bytes)
    var sender = try HPKE.Sender(
      recipientKey: key, ciphersuite: .XWingMLKEM768X25519_SHA256_AES_GCM_256, info: Data(info))
    let ciphertext = try sender.seal(secret.bytes)
    return SealedKey(
      encapsulated: Array(sender.encapsulatedKey), ciphertext: Array(ciphertext))
  }
}

/// A key of 32 bytes, sealed by HPKE.
package struct SealedKey: Hashable, Sendable {
  /// The length of the encapsulated key, in bytes.
  static let encapsulatedByteCount = 1120
  /// The length of the sealed key with its tag, in bytes.
  static let ciphertextByteCount = Secret.byteCount + 16

  /// What the recipient needs to find the key of this sealing.
  var encapsulated: [UInt8]
  /// The sealed key.
  var ciphertext: [UInt8]
}
