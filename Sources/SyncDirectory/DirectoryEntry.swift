/// One name in a listing of a folder.
public struct DirectoryEntry: Hashable, Sendable {
  /// The kind of an entry, as far as the listing shows it.
  public enum Kind: Hashable, Sendable {
    /// A regular file.
    case file
    /// A folder, which may be listed.
    case folder
    /// Anything else: a symbolic link, a device, a socket.
    case other
    /// The listing does not show the kind, and a call for each name would be slow. Reading or
    /// listing the entry finds out.
    case unknown
  }

  /// The name. U+FFFD stands for bytes that are not UTF-8; such a name is never ours and cannot be
  /// opened.
  public var name: String
  /// The kind of the entry.
  public var kind: Kind

  /// Creates an entry from its name and kind.
  public init(name: String, kind: Kind) {
    self.name = name
    self.kind = kind
  }

  /// Whether the entry may be a file.
  public var mayBeFile: Bool { kind == .file || kind == .unknown }
  /// Whether the entry may be a folder.
  public var mayBeFolder: Bool { kind == .folder || kind == .unknown }
}
