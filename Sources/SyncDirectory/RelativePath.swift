/// A place below the root of a shared directory: a list of names.
///
/// No name is empty, `.` or `..`, or contains a slash or a NUL, so a path can
/// never lead out of the root. Paths of published files obey the narrower
/// rules of ``isPublishable``.
public struct RelativePath: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The names from the root down; none for the root itself.
  public let components: [String]

  /// The shared directory itself.
  public static let root = RelativePath(trusted: [])

  /// The most characters that a published name may have.
  public static let componentLimit = 64
  /// The most characters that a published path may have, slashes included.
  public static let lengthLimit = 160

  /// A path of names that the layout made itself.
  init(trusted components: [String]) { self.components = components }

  /// A path of the given names; `nil` if one of them cannot be a name.
  public init?(components: [String]) {
    guard components.allSatisfy(Self.isName) else { return nil }
    self.components = components
  }

  /// Parses names joined by single slashes, as ``description`` writes them;
  /// the empty text is the root.
  public init?(_ description: String) {
    guard !description.isEmpty else {
      self = .root
      return
    }
    self.init(
      components: description.utf8.split(
        separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
      )
      .map { String(decoding: $0, as: UTF8.self) })
  }

  /// The path of an entry of this folder; `nil` if `name` cannot be a name.
  public func appending(_ name: String) -> RelativePath? {
    guard Self.isName(name) else { return nil }
    return RelativePath(trusted: components + [name])
  }

  /// As ``appending(_:)``, for names that the layout made itself.
  func appending(trusted name: String) -> RelativePath {
    RelativePath(trusted: components + [name])
  }

  /// The folder that contains this entry; `nil` for the root.
  public var parent: RelativePath? {
    components.isEmpty ? nil : RelativePath(trusted: components.dropLast())
  }

  /// The last name; empty for the root.
  public var name: String { components.last ?? "" }

  /// The names joined by slashes; empty for the root.
  public var description: String { components.joined(separator: "/") }

  /// Whether a file may be published here: the path is not the root, has at
  /// most ``lengthLimit`` characters, and every name has at most
  /// ``componentLimit`` characters, all of them ASCII letters, digits, dots
  /// or hyphens, and neither begins nor ends with a dot.
  ///
  /// Every file system that was tried preserves such names: SMB refuses
  /// `: * | < " ?` and trailing dots, some synchronizers skip dotfiles, and
  /// others change the normal form of accented letters.
  public var isPublishable: Bool {
    !components.isEmpty && components.allSatisfy(Self.isPublishable)
      && components.reduce(components.count - 1) { $0 + $1.utf8.count } <= Self.lengthLimit
  }

  /// Order of the names, byte by byte.
  public static func < (left: RelativePath, right: RelativePath) -> Bool {
    left.components.lexicographicallyPrecedes(right.components) {
      $0.utf8.lexicographicallyPrecedes($1.utf8)
    }
  }

  private static func isName(_ name: String) -> Bool {
    !name.isEmpty && name != "." && name != ".."
      && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
  }

  private static func isPublishable(_ name: String) -> Bool {
    let characters = name.utf8
    return characters.count <= componentLimit
      && characters.first != UInt8(ascii: ".") && characters.last != UInt8(ascii: ".")
      && characters.allSatisfy { character in
        switch character {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }
}
