import Crypto
import Foundation
import SyncModel

/// The name of an epoch: where it is, its number, and a hash of its key.
package struct EpochReference: Hashable, Sendable, Comparable {
  /// The document whose files it seals.
  package var document: DocumentName
  /// The generation of the document.
  package var generation: IntegrityKey
  /// The number, from 1: one above that of the epoch before.
  package var number: UInt32
  /// The identifier: it follows from the key and the other parts, so that one reference never
  /// stands for two keys.
  package var identifier: ContentHash

  /// Creates a reference from its parts.
  package init(
    document: DocumentName, generation: IntegrityKey, number: UInt32, identifier: ContentHash
  ) {
    self.document = document
    self.generation = generation
    self.number = number
    self.identifier = identifier
  }

  /// The parts, as transcripts and statements have them.
  var bytes: [UInt8] {
    var bytes = document.bits.bytes + generation.bits.bytes
    bytes.append(little: number)
    return bytes + identifier.bytes
  }

  /// Orders references by place and number; the lower identifier is the greater of two.
  package static func < (left: EpochReference, right: EpochReference) -> Bool {
    if left.document != right.document { return left.document < right.document }
    if left.generation != right.generation { return left.generation < right.generation }
    if left.number != right.number { return left.number < right.number }
    return right.identifier.bytes.lexicographicallyPrecedes(left.identifier.bytes)
  }
}

/// The key of an epoch of one generation, from which the keys of its files follow.
package struct EpochKey: Hashable, Sendable {
  /// The length of a former key that is sealed under a later one, in bytes.
  static let sealedByteCount = Secret.byteCount + 16

  /// The 32 bytes.
  let secret: Secret

  /// Draws a new key.
  package static func random(using generator: inout some RandomNumberGenerator) -> EpochKey {
    EpochKey(secret: .random(using: &generator))
  }

  /// Returns the reference of this key as the key of an epoch.
  package func reference(
    root: RootIdentifier, document: DocumentName, generation: IntegrityKey, number: UInt32
  ) -> EpochReference {
    var parts: [UInt8] = []
    parts.append(little: number)
    let bytes = Label.epoch.derive(
      from: secret, root.bits.bytes, document.bits.bytes, generation.bits.bytes, parts
    ).bytes
    // HKDF gives 32 bytes, so that the hash of them is never needed.
    let identifier = ContentHash(bytes: bytes) ?? ContentHash(of: bytes)
    return EpochReference(
      document: document, generation: generation, number: number, identifier: identifier)
  }

  /// Returns whether this is the key that a reference names.
  package func isKey(of reference: EpochReference, root: RootIdentifier) -> Bool {
    self.reference(
      root: root, document: reference.document, generation: reference.generation,
      number: reference.number) == reference
  }

  /// Returns the key of a file.
  ///
  /// - Parameter path: The path below the root, without the hash.
  func fileKey(
    salt: [UInt8], root: RootIdentifier, signer: DeviceIdentifier, path: String
  ) -> SymmetricKey {
    SymmetricKey(
      data: Label.fileKey.derive(
        from: secret, salt: salt, root.bits.bytes, signer.bits.bytes, Array(path.utf8)
      ).bytes)
  }

  /// Seals the key of the epoch before under this one.
  func seal(
    former key: EpochKey, _ former: EpochReference, under reference: EpochReference,
    root: RootIdentifier
  ) throws -> [UInt8] {
    let box = try ChaChaPoly.seal(
      key.secret.bytes, using: formerKey(former, reference, root), nonce: .zero())
    return Array(box.ciphertext + box.tag)
  }

  /// Opens the key of the epoch before, and checks that it is the one that the reference names.
  func open(
    former bytes: [UInt8], _ former: EpochReference, under reference: EpochReference,
    root: RootIdentifier
  ) throws -> EpochKey {
    do {
      let box = try ChaChaPoly.SealedBox(
        nonce: .zero(), ciphertext: bytes.dropLast(16), tag: bytes.suffix(16))
      let key = EpochKey(
        secret: Secret(try ChaChaPoly.open(box, using: formerKey(former, reference, root))))
      guard key.isKey(of: former, root: root) else {
        throw SecurityError.sealingDamaged("former epoch \(former.number): another key")
      }
      return key
    } catch let error as SecurityError {
      throw error
    } catch {
      throw SecurityError.sealingDamaged("former epoch \(former.number): \(error)")
    }
  }

  /// The key that seals one former key, and no other: with it a nonce of zeros is safe.
  private func formerKey(
    _ former: EpochReference, _ reference: EpochReference, _ root: RootIdentifier
  ) -> SymmetricKey {
    SymmetricKey(
      data: Label.formerEpochKey.derive(
        from: secret, root.bits.bytes, former.bytes, reference.bytes
      ).bytes)
  }
}

extension ChaChaPoly.Nonce {
  /// The nonce of keys that seal once.
  static func zero() throws -> ChaChaPoly.Nonce {
    try ChaChaPoly.Nonce(data: [UInt8](repeating: 0, count: 12))
  }
}
