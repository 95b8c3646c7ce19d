import Crypto
import SyncModel

/// What a guest leaves in the shared directory: its keys, sealed under the secret of the invitation
/// and signed by the new device.
package struct InvitationRequest: Hashable, Sendable {
  /// The public keys of the guest's device.
  package let keys: DevicePublicKeys
  /// The name of the person, for the other participants.
  package let person: String

  /// The greatest length of a name, in bytes of UTF-8.
  package static let greatestPerson = 255
  private static let saltByteCount = 16
  private static let plainByteCount =
    DevicePublicKeys.byteCount + 1 + greatestPerson + VerifyingKey.signatureByteCount

  /// The name of the request's file, which only those who have the invitation can find out.
  package static func name(for invitation: Invitation) -> String {
    let bytes = Label.requestName.derive(from: invitation.secret, invitation.place).bytes
    return Base32.encode(bytes.prefix(16))
  }

  /// Seals and signs a request. Its length does not depend on the name of the person.
  package static func sealed(
    by device: DeviceKeys, person: String, for invitation: Invitation,
    using generator: inout some RandomNumberGenerator
  ) throws -> [UInt8] {
    let salt = Secret.random(using: &generator).bytes.prefix(saltByteCount)
    return try sealed(
      device.publicKeys, signing: device.signing, person: person, for: invitation,
      salt: Array(salt))
  }

  /// Does the same as ``sealed(by:person:for:using:)`` with given keys and a given salt, which is
  /// right only in tests.
  static func sealed(
    _ keys: DevicePublicKeys, signing: SigningKey, person: String, for invitation: Invitation,
    salt: [UInt8]
  ) throws -> [UInt8] {
    let name = Array(person.utf8)
    guard name.count <= greatestPerson else {
      throw SecurityError(
        .overLimit, "The name of the person is too long.",
        remedy: "Take a name of at most \(greatestPerson) bytes.")
    }
    let padding = [UInt8](repeating: 0, count: greatestPerson - name.count)
    let content = keys.bytes + [UInt8(name.count)] + name + padding
    let signature = try signing.signature(of: message(content, salt, invitation))
    let box = try ChaChaPoly.seal(
      content + signature, using: key(salt, invitation), nonce: .zero())
    return OuterForm(
      type: .request, body: salt + Array(box.ciphertext + box.tag), signature: []
    ).encoded()
  }

  /// Opens a request. Throws if it was not made for this invitation, or not by the device whose
  /// keys it contains.
  package init(opening file: [UInt8], for invitation: Invitation) throws {
    let form = try OuterForm(
      decoding: file, expecting: .request,
      greatestBody: Self.saltByteCount + Self.plainByteCount + 16)
    guard form.signature.isEmpty,
      form.body.count == Self.saltByteCount + Self.plainByteCount + 16
    else { throw CodecError(.malformed, "request: length") }
    let salt = Array(form.body.prefix(Self.saltByteCount))
    let box = form.body.dropFirst(Self.saltByteCount)
    let plain: [UInt8]
    do {
      let sealed = try ChaChaPoly.SealedBox(
        nonce: .zero(), ciphertext: box.dropLast(16), tag: box.suffix(16))
      plain = Array(try ChaChaPoly.open(sealed, using: Self.key(salt, invitation)))
    } catch {
      throw SecurityError.sealingDamaged("request: \(error)")
    }
    var reader = CanonicalReader(plain, name: "request")
    let keys = try DevicePublicKeys(reading: &reader)
    let count = Int(try reader.byte())
    let name = try reader.take(Self.greatestPerson)
    let signature = try reader.take(VerifyingKey.signatureByteCount)
    try reader.expectEnd()
    guard name.dropFirst(count).allSatisfy({ $0 == 0 }),
      let person = String(validating: name.prefix(count), as: UTF8.self)
    else { throw CodecError(.malformed, "request: name") }
    let content = Array(plain.dropLast(VerifyingKey.signatureByteCount))
    guard keys.verifying.verifies(signature, of: Self.message(content, salt, invitation)) else {
      throw SecurityError.sealingDamaged("request: signature")
    }
    self.keys = keys
    self.person = person
  }

  private static func key(_ salt: [UInt8], _ invitation: Invitation) -> SymmetricKey {
    SymmetricKey(
      data: Label.requestKey.derive(from: invitation.secret, salt: salt, invitation.place).bytes)
  }

  private static func message(
    _ content: [UInt8], _ salt: [UInt8], _ invitation: Invitation
  ) -> [UInt8] {
    Label.requestSignature.transcript(invitation.place, salt, content)
  }
}
