import SyncModel

/// The reason why keys could not be made, found, opened or used.
package struct SecurityError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of error. Later versions may add codes.
  package struct Code: Hashable, Sendable, RawRepresentable, CustomStringConvertible {
    /// The name of the code.
    package let rawValue: String
    /// Wraps a name.
    package init(rawValue: String) { self.rawValue = rawValue }
    /// The name of the code.
    package var description: String { rawValue }

    /// The operating system does not have the cryptography of suite 1.
    package static let systemTooOld = Code(rawValue: "systemTooOld")
    /// A passphrase is easy to guess.
    package static let weakPassphrase = Code(rawValue: "weakPassphrase")
    /// No slot opens with the passphrase or the recovery key.
    package static let noSlotOpens = Code(rawValue: "noSlotOpens")
    /// A recovery key was mistyped.
    package static let recoveryKeyMistyped = Code(rawValue: "recoveryKeyMistyped")
    /// The line of an invitation was mistyped.
    package static let invitationMistyped = Code(rawValue: "invitationMistyped")
    /// An invitation has expired.
    package static let invitationExpired = Code(rawValue: "invitationExpired")
    /// A file of keys can be read by others, or belongs to another user.
    package static let keysExposed = Code(rawValue: "keysExposed")
    /// A file of keys is damaged.
    package static let keysDamaged = Code(rawValue: "keysDamaged")
    /// A file of keys could not be read or written.
    package static let keysUnavailable = Code(rawValue: "keysUnavailable")
    /// No epoch key may be used for writing.
    package static let noFitEpoch = Code(rawValue: "noFitEpoch")
    /// This device does not have the epoch key that is to be used for writing.
    package static let noEpochKey = Code(rawValue: "noEpochKey")
    /// A statement that another device knows has not arrived.
    package static let statementMissing = Code(rawValue: "statementMissing")
    /// A sealed key or name does not open.
    package static let sealingDamaged = Code(rawValue: "sealingDamaged")
    /// A value is outside the limits of the format.
    package static let overLimit = Code(rawValue: "overLimit")
  }

  /// The kind of error.
  package var code: Code
  /// One sentence for the user.
  package var sentence: String
  /// What to do next.
  package var remedy: Remedy
  /// The file on this device that is meant; `nil` if none is.
  package var path: String?
  /// A detail for the developer; empty if there is none.
  package var detail: String

  /// Creates an error.
  package init(
    _ code: Code, _ sentence: String, remedy: Remedy, path: String? = nil, detail: String = ""
  ) {
    self.code = code
    self.sentence = sentence
    self.remedy = remedy
    self.path = path
    self.detail = detail
  }

  /// The sentence, the path, the code, the detail and the remedy in one line.
  package var description: String {
    let place = path.map { " (\($0))" } ?? ""
    let more = detail.isEmpty ? "" : ": \(detail)"
    return "\(sentence)\(place) (\(code)\(more)) \(remedy)"
  }

  static let systemTooOld = SecurityError(
    .systemTooOld, "This system is too old for encrypted documents.",
    remedy: "Update the system: macOS, iOS, tvOS, watchOS and visionOS need release 26.")

  static func sealingDamaged(_ detail: String) -> SecurityError {
    SecurityError(
      .sealingDamaged, "A sealed key does not open.",
      remedy: "Let an owner synchronize: the owner's device seals it again.", detail: detail)
  }
}
