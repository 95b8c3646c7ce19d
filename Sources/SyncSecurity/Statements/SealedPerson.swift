import Crypto
import SyncModel

/// The name of a person, sealed under an epoch key: only participants read it. Its length is always
/// the same.
package struct SealedPerson: Hashable, Sendable {
  static let byteCount = 32 + saltByteCount + plainByteCount + 16
  private static let saltByteCount = 16
  private static let plainByteCount = 1 + InvitationRequest.greatestPerson

  /// The identifier of the epoch, a salt, the sealed name.
  let bytes: [UInt8]

  /// Wraps bytes that were read; `nil` for a wrong length.
  init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// Seals a name for the grant of a device.
  package init(
    _ person: String, of device: DeviceIdentifier, under key: EpochKey, _ epoch: EpochReference,
    using generator: inout some RandomNumberGenerator
  ) throws {
    let name = Array(person.utf8)
    guard name.count <= InvitationRequest.greatestPerson else {
      throw SecurityError(
        .overLimit, "The name of the person is too long.",
        remedy: "Take a name of at most \(InvitationRequest.greatestPerson) bytes.")
    }
    let salt = Array(Secret.random(using: &generator).bytes.prefix(Self.saltByteCount))
    let plain =
      [UInt8(name.count)] + name
      + [UInt8](repeating: 0, count: Self.plainByteCount - 1 - name.count)
    let box = try ChaChaPoly.seal(plain, using: Self.key(key, salt, device), nonce: .zero())
    bytes = epoch.identifier.bytes + salt + Array(box.ciphertext + box.tag)
  }

  /// The identifier of the epoch whose key opens the name.
  package var epochIdentifier: ContentHash {
    ContentHash(of: Array(bytes.prefix(32)), isHash: true)
  }

  /// Opens the name. Throws if it is another device's, or was made under another key.
  package func open(of device: DeviceIdentifier, with key: EpochKey) throws -> String {
    let salt = Array(bytes[32..<32 + Self.saltByteCount])
    let box = bytes.dropFirst(32 + Self.saltByteCount)
    do {
      let sealed = try ChaChaPoly.SealedBox(
        nonce: .zero(), ciphertext: box.dropLast(16), tag: box.suffix(16))
      let plain = Array(try ChaChaPoly.open(sealed, using: Self.key(key, salt, device)))
      return String(decoding: plain.dropFirst().prefix(Int(plain[0])), as: UTF8.self)
    } catch {
      throw SecurityError.sealingDamaged("name of a person: \(error)")
    }
  }

  private static func key(
    _ key: EpochKey, _ salt: [UInt8], _ device: DeviceIdentifier
  ) -> SymmetricKey {
    SymmetricKey(
      data: Label.personKey.derive(from: key.secret, salt: salt, device.bits.bytes).bytes)
  }
}
