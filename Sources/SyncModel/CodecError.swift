/// The reason why bytes could not be decoded as a file of ours, or values not encoded.
///
/// The codec knows no paths; the code that read the file adds its name.
package struct CodecError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of error. Later versions may add codes.
  package struct Code: Hashable, Sendable, RawRepresentable, CustomStringConvertible {
    /// The name of the code.
    package let rawValue: String
    /// Wraps a name.
    package init(rawValue: String) { self.rawValue = rawValue }
    /// The name of the code.
    package var description: String { rawValue }

    /// The bytes end before the length that they give.
    package static let truncated = Code(rawValue: "truncated")
    /// The first bytes do not mark one of our files.
    package static let badMagic = Code(rawValue: "badMagic")
    /// The file is intact and of a format version that this code cannot read.
    package static let unsupportedVersion = Code(rawValue: "unsupportedVersion")
    /// The file is intact and has a critical field that this code does not know.
    package static let unknownCriticalField = Code(rawValue: "unknownCriticalField")
    /// The file is intact and of another type than the one expected.
    package static let wrongType = Code(rawValue: "wrongType")
    /// The hash at the end is not the hash of the bytes before it.
    package static let badChecksum = Code(rawValue: "badChecksum")
    /// A length or a count is greater than permitted.
    package static let lengthOverCap = Code(rawValue: "lengthOverCap")
    /// Two counts that must agree do not.
    package static let wrongCount = Code(rawValue: "wrongCount")
    /// Compressed bytes do not decompress to the length that the header gives.
    package static let badCompression = Code(rawValue: "badCompression")
    /// Anything else that the format forbids.
    package static let malformed = Code(rawValue: "malformed")
  }

  /// The kind of error.
  package var code: Code
  /// The part that was read or written, for the developer.
  package var what: String
  /// The position, in bytes, in the part that `what` names; `nil` if it is not known.
  package var offset: Int?

  /// The greatest length of ``what``, in bytes.
  private static let longest = 400

  /// Creates an error; cuts a long `what` short.
  package init(_ code: Code, _ what: String, at offset: Int? = nil) {
    self.code = code
    // `what` may quote the content of a file.
    self.what =
      what.utf8.count > Self.longest
      ? String(decoding: what.utf8.prefix(Self.longest), as: UTF8.self) + "…" : what
    self.offset = offset
  }

  /// Whether a newer version of this software may be able to read the file.
  package var needsNewerReader: Bool {
    code == .unsupportedVersion || code == .unknownCriticalField
  }

  /// One sentence for the user.
  package var sentence: String {
    switch code {
    case .truncated: "The file is incomplete."
    case .badMagic: "This is not a file of DocumentSync."
    case .unsupportedVersion, .unknownCriticalField:
      "The file was written by a newer version of DocumentSync."
    case .wrongType: "The file has another type than its place suggests."
    case .lengthOverCap: "The file is larger than permitted."
    default: "The file is damaged."
    }
  }

  /// What to do next.
  package var remedy: Remedy {
    switch code {
    case .truncated: "Wait until the shared directory has brought the rest of it."
    case .badMagic, .wrongType: "Move the file out of the shared directory."
    case .unsupportedVersion, .unknownCriticalField: "Update DocumentSync on this device."
    case .lengthOverCap:
      "Update DocumentSync on its author's device: its version exceeds the limits."
    default: "Let its author sync again: it puts back its files that are damaged."
    }
  }

  /// The sentence, the code, the detail and the remedy in one line.
  package var description: String {
    let place = offset.map { " at byte \($0)" } ?? ""
    return "\(sentence) (\(code): \(what)\(place)) \(remedy)"
  }
}
