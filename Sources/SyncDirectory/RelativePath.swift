/// A path below the root of a shared directory: a list of names.
///
/// No name is empty, is `.` or `..`, or contains a slash or a NUL, so a path cannot lead out of the
/// root. Published files need paths that are ``isPublishable``.
public struct RelativePath: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The names from the root down; none for the root itself.
  public let components: [String]

  /// The shared directory itself.
  public static let root = RelativePath(trusted: [])

  /// The most characters that a published name may have.
  public static let componentLimit = 64
  /// The most characters that a published path may have, slashes included.
  public static let lengthLimit = 160

  /// Creates a path from names that the layout made, without a check.
  init(trusted components: [String]) { self.components = components }

  /// Creates a path from names; `nil` if one of them is not allowed.
  public init?(components: [String]) {
    guard components.allSatisfy(Self.isName) else { return nil }
    self.components = components
  }

  /// Parses ``description``: names joined by single slashes. The empty text is the root.
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

  /// Returns the path of an entry of this folder; `nil` if `name` is not allowed.
  public func appending(_ name: String) -> RelativePath? {
    guard Self.isName(name) else { return nil }
    return RelativePath(trusted: components + [name])
  }

  /// Does the same as ``appending(_:)`` for names that the layout made, without a check.
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

  /// Whether a file may be published at this path. The path must not be the root and may have at
  /// most ``lengthLimit`` characters. Every name may have at most ``componentLimit`` characters,
  /// only ASCII letters, digits, dots and hyphens, with no dot at either end.
  ///
  /// All tested file systems preserve such names. SMB refuses `: * | < " ?` and trailing dots, some
  /// synchronizers skip dotfiles, and others change the normal form of accented letters.
  public var isPublishable: Bool {
    !components.isEmpty && components.allSatisfy(Self.isPublishable)
      && components.reduce(components.count - 1) { $0 + $1.utf8.count } <= Self.lengthLimit
  }

  /// Orders paths by their names, byte by byte.
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
