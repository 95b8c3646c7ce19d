import SyncDirectory
import SyncModel

/// The text of a shared directory, one entry on each line, for assertions and for people.
///
/// It replaces identifiers and hashes with short names (`client-1`, `#2`) in order of appearance,
/// so that the text does not depend on random identifiers. Entries that differ only in an
/// identifier without a short name yet are in the order of the identifiers.
///
/// The text contains names, not the contents of files.
public struct DirectoryText {
  private let names: [String: String]
  private var aliases: [String: (text: String, order: Int)] = [:]
  private var counts: [String: Int] = [:]

  /// Creates a renderer with names for identifiers. The keys are the texts of the identifiers.
  public init(names: [String: String] = [:]) { self.names = names }

  /// Renders the entries below `folder`.
  ///
  /// Short names stay the same in later renderings.
  public mutating func render(
    _ directory: any SharedDirectory, below folder: RelativePath = .root
  ) throws -> String {
    var lines: [String] = []
    try render(directory, folder, depth: 0, into: &lines)
    return lines.map { $0 + "\n" }.joined()
  }

  private mutating func render(
    _ directory: any SharedDirectory, _ folder: RelativePath, depth: Int,
    into lines: inout [String]
  ) throws {
    let entries = try directory.list(folder).sorted { left, right in
      let keys = (sortKey(left.name), sortKey(right.name))
      return keys.0 == keys.1
        ? left.name < right.name : keys.0.lexicographicallyPrecedes(keys.1)
    }
    for entry in entries {
      let indent = String(repeating: "  ", count: depth)
      let shown = show(entry.name, in: folder)
      switch entry.kind {
      case .folder:
        lines.append("\(indent)\(shown)/")
        if let path = folder.appending(entry.name) {
          try render(directory, path, depth: depth + 1, into: &lines)
        }
      case .other: lines.append("\(indent)\(shown) (not a file)")
      case .file, .unknown: lines.append(indent + shown)
      }
    }
  }

  /// A part of a name between dots.
  private enum Part: Comparable {
    /// A random identifier or a hash, by its place in the order of appearance.
    case drawn(Int)
    case number(UInt64)
    case text(String)
  }

  /// Returns the key that orders entries: numbers by value, and identifiers and hashes that have
  /// short names by first appearance.
  private func sortKey(_ name: String) -> [Part] {
    name.split(separator: ".", omittingEmptySubsequences: false).map { part in
      let part = String(part)
      if let name = names[part] { return .text(name) }
      if let number = UInt64(part) { return .number(number) }
      let isDrawn = ClientIdentifier(part) != nil || HashFragment(part) != nil
      return isDrawn ? .drawn(aliases[part]?.order ?? .max) : .text(part)
    }
  }

  private mutating func show(_ name: String, in folder: RelativePath) -> String {
    var parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    for index in parts.indices {
      if ClientIdentifier(parts[index]) != nil {
        parts[index] = alias(
          for: parts[index], kind: Self.kind(of: parts, in: folder), separator: "-")
      } else if index > 0, HashFragment(parts[index]) != nil {
        parts[index] = alias(for: parts[index], kind: "#", separator: "")
      }
    }
    return parts.joined(separator: ".")
  }

  private mutating func alias(for text: String, kind: String, separator: String) -> String {
    if let alias = names[text] ?? aliases[text]?.text { return alias }
    counts[kind, default: 0] += 1
    let order = counts[kind, default: 0]
    let alias = "\(kind)\(separator)\(order)"
    aliases[text] = (alias, order)
    return alias
  }

  /// Returns the kind of thing that the identifier in a name identifies.
  private static func kind(of parts: [String], in folder: RelativePath) -> String {
    switch parts[0] {
    case "application": "root"
    case "generation": "generation"
    case "deleted": "client"
    default:
      switch (folder.components.first, folder.components.count) {
      case ("Documents", 1): "document"
      case ("Documents", 2): "generation"
      default: "client"
      }
    }
  }
}
