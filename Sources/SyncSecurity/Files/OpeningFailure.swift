import SyncModel

/// The reason why a sealed file is not used.
///
/// What fails a check is *damaged*. What lacks a statement, a key or a newer reader is *pending*:
/// it is checked again when something has arrived.
package struct OpeningFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The check that failed, in the order in which they are made.
  package enum Reason: Hashable, Sendable, CaseIterable {
    /// The file is longer or shorter than its lengths, or longer than permitted.
    case size
    /// The file is not one of suite 1: in an encrypted application no other is read.
    case unsealed
    /// The file was written by a newer version.
    case newerVersion
    /// The path does not belong to the header, or the hash in the name to the file.
    case name
    /// The hash at the end is not that of the bytes before it.
    case trailer
    /// The envelope is intact, and has what the format forbids.
    case form
    /// No statement that is here names the keys of the signer, or a grant that counts, or the file.
    case lacksStatement
    /// The signature is not the signer's, or is one for another path.
    case signature
    /// The client is not one of the signer.
    case client
    /// The signer takes no part any more, and the file is beyond what counts of it.
    case removed
    /// The role of the signer does not permit files of this type.
    case role
    /// The epoch key is not here.
    case lacksKey
    /// The stream does not open, or is not what its lengths say.
    case content
  }

  /// The check.
  package let reason: Reason
  /// A detail for the developer; it may be empty.
  package let detail: String

  init(_ reason: Reason, _ detail: String = "") {
    self.reason = reason
    self.detail = detail
  }

  /// Whether the file may be of use later.
  package var isPending: Bool {
    switch reason {
    case .lacksStatement, .lacksKey, .newerVersion: true
    default: false
    }
  }

  /// One sentence for the user.
  package var sentence: String {
    switch reason {
    case .size, .trailer, .form: "The file is damaged."
    case .unsealed: "The file is not encrypted, though the application is."
    case .newerVersion: "The file was written by a newer version of DocumentSync."
    case .name: "The file has another content than its name says."
    case .lacksStatement: "A statement about who takes part has not arrived."
    case .signature, .client: "The file was not signed by the device that it names."
    case .removed: "The file is of a device that was removed, and no participant had it."
    case .role: "The device that signed the file may not publish files of this type."
    case .lacksKey: "This device does not have the key of the file."
    case .content: "The content of the file is damaged."
    }
  }

  /// What to do next.
  package var remedy: Remedy {
    switch reason {
    case .size, .trailer, .form, .content, .name:
      "Let its author sync again: it puts back its files that are damaged."
    case .unsealed, .signature, .client, .role:
      "Move the file out of the shared directory, and ask who can write there."
    case .removed: "You need not do anything."
    case .newerVersion: "Update DocumentSync on this device."
    case .lacksStatement: "Wait until the shared directory has brought it."
    case .lacksKey: "Let an owner synchronize: the owner's device seals the key for this one."
    }
  }

  /// The sentence, the reason, the detail and the remedy in one line.
  package var description: String {
    let more = detail.isEmpty ? "" : ": \(detail)"
    return "\(sentence) (\(reason)\(more)) \(remedy)"
  }
}
