import SyncModel

/// The private keys of a device, drawn once for an application, a user and a machine.
package struct DeviceKeys: Hashable, Sendable {
  /// The key that signs the device's files.
  package let signing: SigningKey
  /// The key that opens what is sealed to the device.
  package let opening: OpeningKey
  /// The public halves.
  package let publicKeys: DevicePublicKeys

  /// Makes the keys of two seeds of 32 bytes.
  init(signing: Secret, opening: Secret) throws {
    self.signing = try SigningKey(seed: signing)
    self.opening = try OpeningKey(seed: opening)
    publicKeys = DevicePublicKeys(
      verifying: self.signing.publicKey, sealing: self.opening.publicKey)
  }

  /// Draws the keys of a new device.
  package static func random(
    using generator: inout some RandomNumberGenerator
  ) throws -> DeviceKeys {
    try DeviceKeys(
      signing: .random(using: &generator), opening: .random(using: &generator))
  }

  /// Draws the keys of a new device from the system's generator.
  package static func random() throws -> DeviceKeys {
    var generator = SystemRandomNumberGenerator()
    return try random(using: &generator)
  }

  /// The hash of the public keys.
  package var device: DeviceIdentifier { publicKeys.device }
}

/// What other participants know of a device.
package struct DevicePublicKeys: Hashable, Sendable {
  /// The key that verifies the device's files.
  package let verifying: VerifyingKey
  /// The key to which epoch keys are sealed for the device.
  package let sealing: SealingKey
  /// The device: the hash of both keys.
  package let device: DeviceIdentifier

  /// Creates the keys of a device.
  package init(verifying: VerifyingKey, sealing: SealingKey) {
    self.verifying = verifying
    self.sealing = sealing
    device = DeviceIdentifier(
      bits: Label.device.hashBits([ApplicationKeys.suite], verifying.bytes, sealing.bytes))
  }

  /// The length of ``bytes``.
  static let byteCount = VerifyingKey.byteCount + SealingKey.byteCount

  /// Both keys, the verifying key first.
  package var bytes: [UInt8] { verifying.bytes + sealing.bytes }

  /// Reads ``bytes``.
  init(reading reader: inout CanonicalReader) throws {
    guard let verifying = VerifyingKey(bytes: try reader.take(VerifyingKey.byteCount)),
      let sealing = SealingKey(bytes: try reader.take(SealingKey.byteCount))
    else { throw CodecError(.malformed, "\(reader.name): keys of a device") }
    self.init(verifying: verifying, sealing: sealing)
  }
}
