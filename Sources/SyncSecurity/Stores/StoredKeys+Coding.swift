import SyncModel

extension StoredKeys {
  private static let magic = Array("DocumentSync keys\n".utf8)
  private static let version: UInt8 = 1
  private static let greatestCount = 1 << 20

  /// Encodes the keys as the bytes of a file; the same keys give the same bytes.
  func encoded() -> [UInt8] {
    var bytes = Self.magic + [Self.version]
    bytes += device.signing.seed.bytes
    bytes += device.opening.seed.bytes
    bytes.append(optional: nameKey?.secret.bytes)
    bytes.append(little: lastInvitation)
    bytes.append(little: UInt32(epochs.count))
    for (reference, key) in epochs.sorted(by: { $0.key < $1.key }) {
      bytes += reference.bytes
      bytes += key.secret.bytes
    }
    bytes.append(little: UInt32(invitations.count))
    for invitation in invitations { bytes += invitation.encoded() }
    return bytes + Label.storedKeys.hash(bytes)
  }

  /// Decodes ``encoded()``. Throws if a byte was changed.
  init(decoding bytes: [UInt8]) throws {
    var reader = CanonicalReader(bytes.dropLast(32), name: "keys")
    guard try reader.take(Self.magic.count) == Self.magic else {
      throw CodecError(.badMagic, "keys", at: 0)
    }
    let version = try reader.byte()
    guard version == Self.version else {
      throw CodecError(.unsupportedVersion, "keys: version \(version)")
    }
    guard Label.storedKeys.hash(Array(bytes.dropLast(32))) == Array(bytes.suffix(32)) else {
      throw CodecError(.badChecksum, "keys")
    }
    let signing = Secret(try reader.take(Secret.byteCount))
    let opening = Secret(try reader.take(Secret.byteCount))
    self.init(device: try DeviceKeys(signing: signing, opening: opening))
    nameKey = try reader.optional(Secret.byteCount).map { NameKey(secret: Secret($0)) }
    lastInvitation = try reader.number(UInt64.self)
    for _ in 0..<(try reader.count("epochs", cap: Self.greatestCount)) {
      let reference = EpochReference(
        document: DocumentName(bits: try reader.bits()),
        generation: IntegrityKey(bits: try reader.bits()),
        number: try reader.number(UInt32.self), identifier: try reader.hash())
      epochs[reference] = EpochKey(secret: Secret(try reader.take(Secret.byteCount)))
    }
    for _ in 0..<(try reader.count("invitations", cap: Self.greatestCount)) {
      invitations.append(try PendingInvitation(reading: &reader))
    }
    try reader.expectEnd()
  }
}

extension PendingInvitation {
  fileprivate func encoded() -> [UInt8] {
    var bytes: [UInt8] = [role.rawValue]
    var expiry: [UInt8]?
    if let expiresMilliseconds {
      expiry = []
      expiry?.append(little: expiresMilliseconds)
    }
    bytes.append(optional: expiry)
    switch state {
    case .open(let invitation):
      bytes.append(0)
      bytes += invitation.bytes
    case .answered(let answer):
      bytes.append(1)
      bytes += answer.keys.bytes
      bytes += answer.document.bits.bytes
      bytes.append(little: answer.number)
      bytes.append(counted: Array(answer.person.utf8))
    }
    return bytes
  }

  fileprivate init(reading reader: inout CanonicalReader) throws {
    guard let role = Role(rawValue: try reader.byte()) else {
      throw CodecError(.malformed, "keys: role")
    }
    var expiry: UInt64?
    if let bytes = try reader.optional(8) {
      var number = CanonicalReader(bytes, name: "keys")
      expiry = try number.number(UInt64.self)
    }
    let state: State
    switch try reader.byte() {
    case 0: state = .open(try Invitation(reading: &reader))
    case 1:
      let keys = try DevicePublicKeys(reading: &reader)
      let document = DocumentName(bits: try reader.bits())
      let number = try reader.number(UInt64.self)
      let person = try reader.counted("a name", cap: InvitationRequest.greatestPerson)
      state = .answered(
        Answer(
          keys: keys, person: String(decoding: person, as: UTF8.self), document: document,
          number: number))
    default: throw CodecError(.malformed, "keys: invitation")
    }
    self.init(state: state, role: role, expiresMilliseconds: expiry)
  }
}
