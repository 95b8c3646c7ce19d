import SyncModel

/// A name in the shared directory that is exactly ours.
///
/// Parsing accepts only the text that `description` gives. A name is a hint; the header in the file
/// decides.
package protocol DirectoryName: Hashable, Sendable, LosslessStringConvertible {
  /// Whether the name is that of a folder.
  var isFolder: Bool { get }
}

extension DirectoryName {
  /// False, as most names are names of files.
  package var isFolder: Bool { false }
}

/// The part of a content hash that names carry: ten characters of base 32.
package struct HashFragment: Hashable, Sendable, LosslessStringConvertible {
  /// The ten characters.
  package let description: String

  /// Creates the fragment of a hash.
  package init(_ hash: ContentHash) { description = hash.nameFragment }

  /// Parses ten characters `a`–`z`, `2`–`7`; `nil` for anything else.
  package init?(_ description: String) {
    guard description.utf8.count == 10,
      description.utf8.allSatisfy({ character in
        switch character {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "2")...UInt8(ascii: "7"): true
        default: false
        }
      })
    else { return nil }
    self.description = description
  }

  /// Returns whether a file with this hash may have a name with this fragment.
  package func matches(_ hash: ContentHash) -> Bool { description == hash.nameFragment }
}

/// Parsing and bounds of the decimal numbers in file names.
enum NameNumber {
  /// The greatest number in a name: fifteen digits, so that a segment's path, which has two, stays
  /// below ``RelativePath/lengthLimit``.
  static let greatest: UInt64 = 999_999_999_999_999

  /// Parses a decimal number without sign and leading zeros, up to
  /// ``greatest``; `nil` for anything else.
  static func parse(_ text: Substring, from least: UInt64 = 0) -> UInt64? {
    let digits = text.utf8
    guard (1...15).contains(digits.count),
      digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      digits.first != UInt8(ascii: "0") || digits.count == 1,
      let number = UInt64(text), number >= least
    else { return nil }
    return number
  }
}

extension String {
  /// Returns the parts of a name between dots, empty ones included; `nil` unless there are `count`,
  /// or if the name is not ASCII or longer than a name of ours may be.
  func nameParts(_ count: Int) -> [Substring]? {
    guard utf8.count <= RelativePath.componentLimit, utf8.allSatisfy({ $0 < 0x80 }) else {
      return nil
    }
    let parts = split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == count ? parts : nil
  }
}

extension ClientIdentifier: DirectoryName {
  /// A client's folder.
  package var isFolder: Bool { true }
}

extension DocumentName: DirectoryName {
  /// A document's folder.
  package var isFolder: Bool { true }
}

extension IntegrityKey: DirectoryName {
  /// The folder of one generation of a document.
  package var isFolder: Bool { true }
}
