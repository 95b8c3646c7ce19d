/// The purposes of keys, hashes and signatures.
///
/// Every derivation, hash and signature begins with a label of its own, so that bytes made for one
/// purpose never serve another. The raw values are part of the format.
enum Label: String, CaseIterable {
  /// The enrolment key's seed, from the application secret.
  case enrolmentKey = "DocumentSync 1 enrolment key"
  /// The owner key's seed, from the application secret.
  case ownerKey = "DocumentSync 1 owner key"
  /// The name key, from the application secret.
  case nameKey = "DocumentSync 1 name key"
  /// The name of a document's folder, under the name key.
  case documentName = "DocumentSync 1 document name"
  /// The identifier of a root.
  case root = "DocumentSync 1 root"
  /// The identifier of a device.
  case device = "DocumentSync 1 device"
  /// The identifier of a client.
  case client = "DocumentSync 1 client"
  /// The identifier of an epoch key.
  case epoch = "DocumentSync 1 epoch"
  /// The key that seals the key of the epoch before.
  case formerEpochKey = "DocumentSync 1 former epoch key"
  /// The information to which the sealing of an epoch key is bound.
  case epochSealing = "DocumentSync 1 epoch sealing"
  /// The key that seals one file.
  case fileKey = "DocumentSync 1 file key"
  /// The signature of a sealed file.
  case fileSignature = "DocumentSync 1 file signature"
  /// The signature of the application file.
  case applicationSignature = "DocumentSync 1 application signature"
  /// What the author of a statement signs.
  case statementSignature = "DocumentSync 1 statement signature"
  /// A slot that a passphrase opens.
  case passphraseSlot = "DocumentSync 1 passphrase slot"
  /// A slot that the recovery key opens.
  case recoverySlot = "DocumentSync 1 recovery slot"
  /// The check of a group of a recovery key.
  case recoveryGroup = "DocumentSync 1 recovery group"
  /// The check of an invitation's line.
  case invitationCheck = "DocumentSync 1 invitation check"
  /// The name of the request that answers an invitation.
  case requestName = "DocumentSync 1 request name"
  /// The key that seals a request.
  case requestKey = "DocumentSync 1 request key"
  /// What a guest signs.
  case requestSignature = "DocumentSync 1 request signature"
  /// The key that seals the name of a person.
  case personKey = "DocumentSync 1 person key"
  /// The key of a state digest.
  case stateDigest = "DocumentSync 1 state digest"
  /// The machine in the name of a file of keys.
  case machine = "DocumentSync 1 machine"
  /// The check at the end of a file of keys.
  case storedKeys = "DocumentSync 1 stored keys"

  /// Returns the label and the parts, each after its length, as the input of a hash, a derivation
  /// or a signature. Different lists of parts give different bytes.
  func transcript(_ parts: [UInt8]...) -> [UInt8] { transcript(all: parts) }

  /// Does the same as ``transcript(_:)`` for a list of parts.
  func transcript(all parts: [[UInt8]]) -> [UInt8] {
    var bytes: [UInt8] = []
    for part in [Array(rawValue.utf8)] + parts {
      bytes.append(little: UInt32(part.count))
      bytes += part
    }
    return bytes
  }
}
