import Foundation
import Testing

/// Compares the JSON that commands print with the files of `Fixtures/JSON`.
///
/// The files contain placeholders where the output differs from run to run: identifiers and
/// hashes in angle brackets, the same number for all times, for all numbers of bytes and
/// for other numbers that depend on the order of random identifiers.
/// `DOCSYNC_WRITE_FIXTURES=1` writes the files instead.
final class Golden {
  /// The folder of the files.
  static let folder = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../Fixtures/JSON").standardized

  /// Whether the files are written, instead of compared.
  static let isWriting =
    ProcessInfo.processInfo.environment["DOCSYNC_WRITE_FIXTURES"] == "1"

  private let scratch: Scratch
  /// The placeholders of identifiers, by identifier.
  private var names: [String: String] = [:]

  init(_ scratch: Scratch) { self.scratch = scratch }

  /// Lets a name stand for an identifier.
  func name(_ identifier: String?, _ name: String) {
    if let identifier { names[identifier] = name }
  }

  /// Lets the names of the devices stand for the identifiers of the clients of a store's document.
  func nameClients(of store: String) throws {
    let clients = try #require(
      try scratch.succeed("clients", store, "--json").json()["clients"] as? [[String: Any]])
    for client in clients {
      guard let identifier = client["client"] as? String, names[identifier] == nil,
        let name = client["clientName"] as? String
      else { continue }
      let sameName = names.values.count { $0 == name || $0.hasPrefix(name + " ") }
      names[identifier] = sameName == 0 ? name : "\(name) \(sameName + 1)"
    }
  }

  /// Runs a command with `--json`, and expects its exit code and the object of a file.
  @discardableResult
  func expect(
    _ file: String, _ arguments: String..., status: Int32 = 0,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> [String: Any] {
    let result = try Executable.run(arguments + ["--json"], in: scratch.path)
    #expect(
      result.status == status, "\(file): \(result.output)\(result.errors)",
      sourceLocation: sourceLocation)
    #expect(result.errors == "", "\(file)", sourceLocation: sourceLocation)
    let object = try result.json(sourceLocation: sourceLocation)
    try Self.compare(
      text(of: object), with: file, sourceLocation: sourceLocation)
    return object
  }

  /// Expects the object of a file.
  static func compare(
    _ text: String, with file: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let url = folder.appending(path: file + ".json")
    if isWriting {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try Data(text.utf8).write(to: url)
    }
    let expected = try String(contentsOf: url, encoding: .utf8)
    guard text != expected else { return }
    let changes = text.split(separator: "\n").difference(from: expected.split(separator: "\n")).map
    {
      switch $0 {
      case .insert(let line, let text, _): "+\(line + 1)\(text)"
      case .remove(let line, let text, _): "-\(line + 1)\(text)"
      }
    }
    Issue.record(
      "\(file).json differs:\n\(changes.joined(separator: "\n"))", sourceLocation: sourceLocation)
  }

  /// An object with placeholders, as a file has it.
  func text(of object: [String: Any]) throws -> String {
    let value = normalized(object, key: "")
    return String(decoding: try Self.data(value), as: UTF8.self) + "\n"
  }

  private static func data(_ value: Any) throws -> Data {
    try JSONSerialization.data(
      withJSONObject: value,
      options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed])
  }

  private func normalized(_ value: Any, key: String) -> Any {
    switch value {
    case let object as [String: Any]:
      // Clients that have no name here take the same placeholder: the first of them stays.
      return Dictionary(
        object.sorted { $0.key < $1.key }.map {
          (normalized($0.key), normalized($0.value, key: $0.key))
        }, uniquingKeysWith: { first, _ in first })
    case let array as [Any]: return sorted(array.map { normalized($0, key: key) }, key: key)
    case let text as String:
      if key == "platform" { return "<platform>" }
      // Of several members that need the same files, any may be named.
      if key == "member" { return "<client>" }
      return normalized(text)
    case let number as NSNumber where !Self.isBool(number): return normalized(number, key: key)
    default: return value
    }
  }

  /// Random identifiers decide the order of most arrays, so the order of elements does not count.
  /// What the demo shows is one note after the other.
  private func sorted(_ array: [Any], key: String) -> [Any] {
    guard key != "notes" else { return array }
    return array.map { element in
      (element, (try? Self.data(element)).map { String(decoding: $0, as: UTF8.self) } ?? "")
    }.sorted { $0.1 < $1.1 }.map(\.0)
  }

  private static func isBool(_ number: NSNumber) -> Bool {
    String(cString: number.objCType) == "c"
  }

  private func normalized(_ number: NSNumber, key: String) -> NSNumber {
    let name = key.lowercased()
    if name.hasSuffix("milliseconds") { return 1_790_000_000_000 }
    if name.hasSuffix("bytecount") || name.hasPrefix("bytes") { return 1000 }
    if name == "listings" || name == "revision" { return 10 }
    // The integer key of a note of the demo.
    if name == "key" { return 1 }
    return number
  }

  private func normalized(_ text: String) -> String {
    var text = text
    // A path of the temporary folder begins with its name, or with what that leads to.
    for folder in [scratch.path, URL(filePath: scratch.path).resolvingSymlinksInPath().path] {
      text = text.replacingOccurrences(of: folder, with: "<folder>")
    }
    for (identifier, name) in names {
      text = text.replacingOccurrences(of: identifier, with: "<\(name)>")
      text = text.replacingOccurrences(of: "(\(identifier.prefix(6)))", with: "(<\(name)>)")
    }
    let temporary = FileManager.default.temporaryDirectory
    for folder in [temporary.path, temporary.resolvingSymlinksInPath().path] {
      text = text.replacingOccurrences(of: folder, with: "<temporary>")
    }
    for (pattern, replacement) in Self.patterns {
      text = text.replacing(pattern.wordBoundaryKind(.simple), with: replacement)
    }
    return text.replacing(/\.(before|backup)-[0-9A-Za-z:\-]+/) { ".\($0.1)-<time>" }
  }

  /// Text that differs from run to run, and what takes its place.
  private static var patterns: [(Regex<Substring>, String)] {
    [
      (/docsync-demo-[0-9a-f]{8}/, "docsync-demo-<number>"),
      (/\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d/, "<time>"),
      (/[0-9.]+ (?:KB|MB)\b/, "<size>"),
      (/\b[0-9a-f]{64}\b/, "<hash>"),
      (/\b[0-9a-f]{24,63}\b/, "<hex>"),
      (/\b[a-z2-7]{26}\b/, "<identifier>"),
      (/\b[a-z2-7]{10}\.syncchg\b/, "<hash>.syncchg"),
    ]
  }
}
