import Crypto
import SyncModel

/// A device: the hash of its two public keys, so that no other keys can claim it.
package struct DeviceIdentifier: RandomIdentifier {
  /// The 128 bits.
  package let bits: Bits128
  /// Wraps 128 bits.
  package init(bits: Bits128) { self.bits = bits }
}

extension DeviceIdentifier {
  /// The name under which statements of an application's enrolment key stand.
  static func enrolment(of root: RootIdentifier) -> DeviceIdentifier {
    DeviceIdentifier(bits: root.bits)
  }
}

/// The 16 random bytes of a client, which its files carry: with the device they give the client's
/// identifier.
package struct ClientSeed: RandomIdentifier {
  /// The 128 bits.
  package let bits: Bits128
  /// Wraps 128 bits.
  package init(bits: Bits128) { self.bits = bits }

  /// Returns the client of a device.
  package func client(of device: DeviceIdentifier) -> ClientIdentifier {
    ClientIdentifier(bits: Label.client.hashBits(device.bits.bytes, bits.bytes))
  }
}

extension Label {
  /// Returns the SHA-256 of ``transcript(_:)`` of the parts.
  func hash(_ parts: [UInt8]...) -> [UInt8] { hash(all: parts) }

  /// Returns the first 128 bits of ``hash(_:)``.
  func hashBits(_ parts: [UInt8]...) -> Bits128 {
    let bytes = hash(all: parts)
    return bytes.withUnsafeBytes { buffer in
      Bits128(
        high: UInt64(bigEndian: buffer.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
  }

  private func hash(all parts: [[UInt8]]) -> [UInt8] {
    Array(SHA256.hash(data: transcript(all: parts)))
  }

  /// Derives 32 bytes from a secret by HKDF with SHA-256; the information is ``transcript(_:)`` of
  /// the parts.
  func derive(from secret: Secret, salt: [UInt8] = [], _ parts: [UInt8]...) -> Secret {
    let key = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: secret.bytes), salt: salt,
      info: transcript(all: parts), outputByteCount: Secret.byteCount)
    return key.withUnsafeBytes { Secret($0) }
  }
}
