import Crypto
import SyncModel

/// A private Ed25519 key.
package struct SigningKey: Hashable, Sendable {
  /// The seed of 32 bytes, from which the key follows.
  let seed: Secret
  /// The public half.
  package let publicKey: VerifyingKey

  /// Makes the key of a seed of 32 bytes.
  init(seed: Secret) throws {
    let key = try Curve25519.Signing.PrivateKey(rawRepresentation: seed.bytes)
    self.seed = seed
    publicKey = VerifyingKey(unchecked: Array(key.publicKey.rawRepresentation))
  }

  /// Signs a message. On Apple's systems two signatures of one message differ.
  func signature(of message: [UInt8]) throws -> [UInt8] {
    let key = try Curve25519.Signing.PrivateKey(rawRepresentation: seed.bytes)
    return Array(try key.signature(for: message))
  }
}

/// A public Ed25519 key.
package struct VerifyingKey: Hashable, Sendable {
  /// The length of a key, in bytes.
  static let byteCount = 32
  /// The length of a signature, in bytes.
  package static let signatureByteCount = 64

  /// The 32 bytes.
  package let bytes: [UInt8]

  /// Wraps 32 bytes; `nil` for any other length.
  package init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  fileprivate init(unchecked bytes: [UInt8]) { self.bytes = bytes }

  /// Returns whether a signature is this key's over a message.
  func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    guard signature.count == Self.signatureByteCount else { return false }
    do {
      let key = try Curve25519.Signing.PublicKey(rawRepresentation: bytes)
      return key.isValidSignature(signature, for: message)
    } catch {
      // 32 bytes that are no key have signed nothing.
      return false
    }
  }
}
