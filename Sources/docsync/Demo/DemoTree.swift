import SyncDirectory
import SyncModel

/// The files of the shared directory for people: a line for each, with short names for identifiers
/// and hashes, and a mark for new files.
struct DemoTree {
  private let directory: any SharedDirectory
  private var names: [String: String] = [:]
  private var seen: Set<String> = []

  init(_ directory: any SharedDirectory) { self.directory = directory }

  /// Shows a client's folders under the name of its device.
  mutating func call(_ client: ClientIdentifier, _ name: String) {
    names[client.description] = name
  }

  /// Returns the lines of the directory's files, new ones marked; with `onlyNew`, only their lines.
  mutating func lines(onlyNew: Bool = false) throws -> [String] {
    var lines: [String] = []
    _ = try append(.root, depth: 0, onlyNew: onlyNew, to: &lines)
    return lines
  }

  /// Appends the lines of a folder's content; returns whether there are any.
  private mutating func append(
    _ folder: RelativePath, depth: Int, onlyNew: Bool, to lines: inout [String]
  ) throws -> Bool {
    var isShown = false
    let entries = try directory.list(folder).sorted { Self.comes($0.name, before: $1.name) }
    for entry in entries {
      guard let path = folder.appending(entry.name) else { continue }
      let indent = String(repeating: "  ", count: depth)
      if entry.mayBeFolder, entry.kind == .folder {
        var inner: [String] = []
        guard try append(path, depth: depth + 1, onlyNew: onlyNew, to: &inner) else { continue }
        lines.append("     \(indent)\(show(entry.name))/")
        lines += inner
        isShown = true
      } else {
        let isNew = seen.insert(path.description).inserted
        guard isNew || !onlyNew else { continue }
        lines.append("   \(isNew ? "+" : " ") \(indent)\(show(entry.name))")
        isShown = true
      }
    }
    return isShown
  }

  /// Returns whether a name sorts before another. Compares numbers as numbers, so that 10 comes
  /// after 9.
  private static func comes(_ left: String, before right: String) -> Bool {
    func key(_ name: String) -> (Int, String) {
      (name.split(separator: ".").first.flatMap { Int($0) } ?? 0, name)
    }
    return key(left) < key(right)
  }

  private func show(_ name: String) -> String {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    return parts.enumerated().map { index, part in
      if let name = names[part] { return name }
      let isHash = index > 0 && HashFragment(part) != nil
      return isHash || ClientIdentifier(part) != nil ? part.prefix(4) + "…" : part
    }.joined(separator: ".")
  }
}
