import SyncModel

/// An epoch key as a statement has it: sealed to recipients, with the key of the epoch before sealed
/// under it.
package struct EpochKeys: Hashable, Sendable {
  /// The key of the epoch before.
  package struct Former: Hashable, Sendable {
    /// The epoch's identifier.
    package var identifier: ContentHash
    /// Its key, sealed under that of the later epoch.
    var box: [UInt8]
  }

  /// A recipient: a device, or the owner key.
  package struct Recipient: Hashable, Sendable {
    /// The device; for the owner key, the bits of the root.
    package var device: DeviceIdentifier
    /// The key, sealed for it.
    var box: SealedKey
  }

  /// The epoch whose key is sealed.
  package let epoch: EpochReference
  /// The key of the epoch before; `nil` for number 1.
  package let former: Former?
  /// The recipients, in ascending order.
  package let recipients: [Recipient]

  /// The epoch before; `nil` for number 1.
  package var formerEpoch: EpochReference? {
    former.map {
      EpochReference(
        document: epoch.document, generation: epoch.generation, number: epoch.number - 1,
        identifier: $0.identifier)
    }
  }

  /// Seals an epoch key to recipients, each with the key to seal to.
  ///
  /// - Parameter former: The epoch before and its key; `nil` for number 1.
  init(
    sealing key: EpochKey, of epoch: EpochReference, former: (EpochReference, EpochKey)?,
    to recipients: [DeviceIdentifier: SealingKey], author: DeviceIdentifier, root: RootIdentifier
  ) throws {
    guard recipients.count <= Statement.greatestRecipients else {
      throw SecurityError(
        .overLimit, "An epoch key has too many recipients for one statement.",
        remedy: "Seal it in several statements.", detail: "\(recipients.count) recipients")
    }
    self.epoch = epoch
    self.former = try former.map { reference, formerKey in
      Former(
        identifier: reference.identifier,
        box: try key.seal(former: formerKey, reference, under: epoch, root: root))
    }
    let devices = recipients.keys.sorted()
    let place = Self.place(epoch, self.former, devices, author, root)
    self.recipients = try devices.compactMap { device in
      try recipients[device].map {
        Recipient(
          device: device, box: try $0.seal(key.secret, info: Self.info(place, device)))
      }
    }
  }

  /// Opens the key that is sealed to a recipient, and checks that it is the key of the epoch.
  /// Returns `nil` if the recipient is none.
  func open(
    for recipient: DeviceIdentifier, with key: OpeningKey, author: DeviceIdentifier,
    root: RootIdentifier
  ) throws -> EpochKey? {
    guard let sealed = recipients.first(where: { $0.device == recipient }) else { return nil }
    let place = Self.place(epoch, former, recipients.map(\.device), author, root)
    let opened = EpochKey(secret: try key.open(sealed.box, info: Self.info(place, recipient)))
    guard opened.isKey(of: epoch, root: root) else {
      throw SecurityError.sealingDamaged("epoch \(epoch.number): another key")
    }
    return opened
  }

  /// Opens the key of the epoch before.
  func openFormer(with key: EpochKey, root: RootIdentifier) throws -> EpochKey? {
    guard let former, let formerEpoch else { return nil }
    return try key.open(former: former.box, formerEpoch, under: epoch, root: root)
  }

  /// Everything that all sealings of a statement are bound to.
  private static func place(
    _ epoch: EpochReference, _ former: Former?, _ recipients: [DeviceIdentifier],
    _ author: DeviceIdentifier, _ root: RootIdentifier
  ) -> [[UInt8]] {
    [
      root.bits.bytes, author.bits.bytes, epoch.bytes,
      former.map { $0.identifier.bytes + $0.box } ?? [], recipients.flatMap(\.bits.bytes),
    ]
  }

  private static func info(_ place: [[UInt8]], _ recipient: DeviceIdentifier) -> [UInt8] {
    Label.epochSealing.transcript(all: place + [recipient.bits.bytes])
  }

  // MARK: Bytes

  func encoded() -> [UInt8] {
    var bytes = epoch.bytes
    bytes.append(optional: former.map { $0.identifier.bytes + $0.box })
    bytes.append(little: UInt32(recipients.count))
    for recipient in recipients {
      bytes += recipient.device.bits.bytes
      bytes += recipient.box.encapsulated
      bytes += recipient.box.ciphertext
    }
    return bytes
  }

  init(reading reader: inout CanonicalReader) throws {
    epoch = EpochReference(
      document: DocumentName(bits: try reader.bits()),
      generation: IntegrityKey(bits: try reader.bits()),
      number: try reader.number(UInt32.self), identifier: try reader.hash())
    former = try reader.optional(32 + EpochKey.sealedByteCount).map { bytes in
      Former(
        identifier: ContentHash(of: Array(bytes.prefix(32)), isHash: true),
        box: Array(bytes.dropFirst(32)))
    }
    guard epoch.number >= 1, (epoch.number == 1) == (former == nil) else {
      throw CodecError(.malformed, "\(reader.name): number of the epoch")
    }
    var found: [Recipient] = []
    for _ in 0..<(try reader.count("recipients", cap: Statement.greatestRecipients)) {
      let device = DeviceIdentifier(bits: try reader.bits())
      guard found.last.map({ $0.device < device }) ?? true else {
        throw CodecError(.malformed, "\(reader.name): order of recipients", at: reader.offset)
      }
      let box = SealedKey(
        encapsulated: try reader.take(SealedKey.encapsulatedByteCount),
        ciphertext: try reader.take(SealedKey.ciphertextByteCount))
      found.append(Recipient(device: device, box: box))
    }
    guard !found.isEmpty else { throw CodecError(.malformed, "\(reader.name): no recipients") }
    recipients = found
  }
}
