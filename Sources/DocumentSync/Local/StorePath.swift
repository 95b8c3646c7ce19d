/// The two parts of a store's path.
///
/// `NSString.deletingLastPathComponent` ends the process on Linux for a path of
/// one character (Foundation of Swift 6.3).
struct StorePath {
  /// The folder; “.” for a name alone.
  let folder: String
  /// The file's name.
  let name: String

  init(_ path: String) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else {
      folder = "."
      name = path
      return
    }
    let before = path[..<slash]
    folder = before.isEmpty ? "/" : String(before)
    name = String(path[path.utf8.index(after: slash)...])
  }
}
