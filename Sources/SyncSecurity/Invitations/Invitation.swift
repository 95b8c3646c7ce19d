import SyncModel

/// An invitation to a document: one printed line, which must not travel by the provider of the
/// shared directory.
package struct Invitation: Hashable, Sendable {
  /// The application.
  package var root: RootIdentifier
  /// The device that invites, which alone answers.
  package var inviter: DeviceIdentifier
  /// The document in which the guest will take part.
  package var document: DocumentName
  /// The generation of the document that the inviting device knew.
  package var generation: IntegrityKey
  /// The number of the invitation, among those of the device.
  package var number: UInt64
  /// 32 bytes that only the inviting device and the guest have.
  let secret: Secret

  /// Draws the secret of a new invitation.
  package init(
    root: RootIdentifier, inviter: DeviceIdentifier, document: DocumentName,
    generation: IntegrityKey, number: UInt64, using generator: inout some RandomNumberGenerator
  ) {
    self.init(
      root: root, inviter: inviter, document: document, generation: generation, number: number,
      secret: .random(using: &generator))
  }

  init(
    root: RootIdentifier, inviter: DeviceIdentifier, document: DocumentName,
    generation: IntegrityKey, number: UInt64, secret: Secret
  ) {
    self.root = root
    self.inviter = inviter
    self.document = document
    self.generation = generation
    self.number = number
    self.secret = secret
  }

  // MARK: The line

  private static let prefix = "ds1"
  private static let checkByteCount = 5
  /// The length of ``bytes``.
  static let byteCount = 4 * 16 + 8 + Secret.byteCount

  /// Everything but the secret, as requests are bound to it.
  var place: [UInt8] {
    var bytes = root.bits.bytes + inviter.bits.bytes + document.bits.bytes + generation.bits.bytes
    bytes.append(little: number)
    return bytes
  }

  /// The invitation without the check.
  var bytes: [UInt8] { place + secret.bytes }

  /// The line that the guest gets: 178 characters without spaces. It is as secret as what it
  /// invites to.
  package var text: String {
    Self.prefix + Base32.encode(bytes + Self.check(of: bytes))
  }

  /// Reads ``text``. Capital letters, and spaces and line breaks that a mail program put in, do not
  /// matter. Throws ``SecurityError`` with the code `invitationMistyped`.
  package init(_ text: String) throws {
    let line = text.lowercased().filter { !$0.isWhitespace }
    let mistyped = SecurityError(
      .invitationMistyped, "This is not the complete line of an invitation.",
      remedy: "Copy the whole line, which begins with “\(Self.prefix)”.",
      detail: "\(line.count) characters")
    guard line.hasPrefix(Self.prefix),
      let all = Base32.decode(String(line.dropFirst(Self.prefix.count))),
      all.count == Self.byteCount + Self.checkByteCount,
      Array(all.suffix(Self.checkByteCount)) == Self.check(of: all.dropLast(Self.checkByteCount))
    else { throw mistyped }
    var reader = CanonicalReader(all, name: "invitation")
    try self.init(reading: &reader)
  }

  init(reading reader: inout CanonicalReader) throws {
    self.init(
      root: RootIdentifier(bits: try reader.bits()),
      inviter: DeviceIdentifier(bits: try reader.bits()),
      document: DocumentName(bits: try reader.bits()),
      generation: IntegrityKey(bits: try reader.bits()),
      number: try reader.number(UInt64.self), secret: Secret(try reader.take(Secret.byteCount)))
  }

  private static func check(of bytes: some Collection<UInt8>) -> [UInt8] {
    Array(Label.invitationCheck.hash(Array(bytes)).prefix(checkByteCount))
  }
}
