/// A name in the shared directory that is not exactly one of ours.
///
/// No code opens such a file. Listings report them, since a conflicted copy means that another
/// program renames our files.
package struct ForeignName: Hashable, Sendable, CustomStringConvertible {
  /// The kind of file that the name suggests.
  package enum Reason: String, Hashable, Sendable, CaseIterable {
    /// A synchronizer's copy of a file that two sides wrote.
    case conflictedCopy
    /// An unfinished or leftover file of another program.
    case temporary
    /// A file in the cloud that this device has not fetched.
    case placeholder
    /// An editor's backup.
    case backup
    /// A dotfile.
    case hidden
    /// A file that an operating system leaves in folders.
    case system
    /// An entry that has one of our names but is something else: a link, or a folder instead of a
    /// file.
    case wrongKind
    /// Any other name.
    case unknown
  }

  /// The name as listed.
  package var name: String
  /// The kind of file that it suggests.
  package var reason: Reason

  /// Creates a value for a name with a known reason.
  package init(name: String, reason: Reason) {
    self.name = name
    self.reason = reason
  }

  /// Creates a value for a name that is not ours; derives the reason from the name.
  package init(name: String) {
    self.init(name: name, reason: Self.reason(for: name))
  }

  /// The name and the reason.
  package var description: String { "\(name) (\(reason.rawValue))" }

  private static func reason(for name: String) -> Reason {
    let lower = name.lowercased()
    if lower.hasPrefix("."), lower.hasSuffix(".icloud") { return .placeholder }
    if lower.contains(".sync-conflict-") || lower.contains("conflicted copy")
      || lower.contains("in conflict") || hasCopyNumber(lower)
    {
      return .conflictedCopy
    }
    let temporaryPrefixes = [
      ".fuse_hidden", ".nfs", ".syncthing.", "~syncthing~", ".dat.nosync", ".~tmp", ".smbdelete",
      ".goutputstream-",
    ]
    let temporarySuffixes = [".tmp", ".temp", ".partial", ".part", ".crdownload", ".download"]
    if temporaryPrefixes.contains(where: lower.hasPrefix)
      || temporarySuffixes.contains(where: lower.hasSuffix)
    {
      return .temporary
    }
    if lower.hasSuffix(".icloud") { return .placeholder }
    if lower.hasSuffix("~") || lower.hasPrefix("~") || lower.hasSuffix(".bak")
      || lower.hasSuffix(".orig")
    {
      return .backup
    }
    if systemNames.contains(lower) { return .system }
    return lower.hasPrefix(".") ? .hidden : .unknown
  }

  /// Whether a synchronizer or an operating system makes such files in folders by itself, such as
  /// `.stfolder`. They do not show what the folder is for.
  package var isOfSystem: Bool {
    reason == .system || name.hasPrefix(".") && reason != .placeholder
  }

  /// Names without a leading dot, in lower case, that operating systems and servers give to files
  /// and folders of their own; and one with a dot.
  private static let systemNames: Set<String> = [
    "desktop.ini", "thumbs.db", ".ds_store", "icon\r", "lost+found", "$recycle.bin",
    "system volume information", "@eadir", "#recycle", "#snapshot",
  ]

  /// Returns whether the name contains ` (2)`, `(2)` or the like.
  private static func hasCopyNumber(_ name: String) -> Bool {
    guard let open = name.lastIndex(of: "("),
      let close = name[open...].firstIndex(of: ")")
    else { return false }
    let inside = name[name.index(after: open)..<close]
    return !inside.isEmpty
      && inside.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
      }
  }
}
