import Foundation
import Testing

/// The objects that the page on the command line describes: the tables below “JSON”.
struct JSONPage {
  /// A line of the table of an object.
  struct Key {
    var isOptional: Bool
    /// The value, as in `[*table*]`.
    var value: String
    /// The text of the last column.
    var meaning: String
  }

  /// The keys of an object.
  typealias Keys = [String: Key]

  /// A key of an object.
  struct Place: Hashable {
    var object: String
    var key: String
  }

  /// The tables, by the names of the objects.
  private(set) var objects: [String: Keys] = [:]
  /// The commands, by the name of the object that they print.
  private(set) var commands: [String: String] = [:]

  private static let plain: Set<String> = [
    "text", "number", "boolean", "client", "identifier", "row", "hash", "time", "vector", "value",
    "any",
  ]

  init() throws {
    let text = try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Documentation/CommandLine.md"), encoding: .utf8)
    let start = try #require(text.range(of: "\n## JSON\n"))
    var object: String?
    for line in text[start.upperBound...].split(separator: "\n") {
      if line.hasPrefix("## ") { break }
      if let heading = line.wholeMatch(of: /### \*(.+)\*/) {
        object = String(heading.1)
        objects[String(heading.1)] = [:]
      } else if line.hasPrefix("### ") {
        object = nil
      } else if let object, let row = line.wholeMatch(of: /\| `(\w+)`(\?)? \| (.+?) \| (.+) \|/) {
        objects[object]?[String(row.1)] = Key(
          isOptional: row.2 != nil, value: String(row.3), meaning: String(row.4))
      } else if object == nil, let row = line.wholeMatch(of: /\| (.+) \| \*(.+)\* \|/) {
        commands[String(row.2)] = String(row.1)
      }
    }
  }

  /// The words in code type in the meaning of a key.
  func values(_ object: String, _ key: String) throws -> Set<String> {
    let meaning = try #require(objects[object]?[key]?.meaning)
    return Set(meaning.matches(of: /`(\w+)`/).map { String($0.1) })
  }

  /// Holds a value against its description, and adds the keys that it has to `seen`.
  func check(
    _ value: Any, _ description: String, at path: String, _ seen: inout Set<Place>
  ) throws {
    if let list = description.wholeMatch(of: /\[(.+)\]/) {
      let values = try #require(value as? [Any], "\(path) is no list")
      for (index, value) in values.enumerated() {
        try check(value, String(list.1), at: "\(path)[\(index)]", &seen)
      }
    } else if let dictionary = description.wholeMatch(of: /\{[a-z ]+: (.+)\}/) {
      let values = try #require(value as? [String: Any], "\(path) is no object")
      for (key, value) in values {
        try check(value, String(dictionary.1), at: "\(path).\(key)", &seen)
      }
    } else if let optional = description.wholeMatch(of: /(.+) or null/) {
      if !(value is NSNull) { try check(value, String(optional.1), at: path, &seen) }
    } else {
      let name = String(try #require(description.wholeMatch(of: /\*(.+)\*/), "\(description)").1)
      try check(value, named: name, at: path, &seen)
    }
  }

  private func check(
    _ value: Any, named name: String, at path: String, _ seen: inout Set<Place>
  ) throws {
    switch name {
    case "text", "client", "identifier", "row", "hash":
      #expect(value is String, "\(path) is no \(name)")
    case "number", "time": #expect(value is NSNumber, "\(path) is no \(name)")
    case "boolean": #expect(value is Bool, "\(path) is no \(name)")
    case "vector": try check(value, "{client: *entry*}", at: path, &seen)
    case "value", "any": break
    default:
      let keys = try #require(objects[name], "The page has no table of \(name)")
      let object = try #require(value as? [String: Any], "\(path) is no object")
      for (key, value) in object {
        guard let described = keys[key] else {
          Issue.record("\(path): the page does not name `\(key)` of \(name)")
          continue
        }
        seen.insert(Place(object: name, key: key))
        try check(value, described.value, at: "\(path).\(key)", &seen)
      }
      for (key, described) in keys where !described.isOptional {
        #expect(object[key] != nil, "\(path): `\(key)` of \(name) is missing")
      }
    }
  }

  /// The objects that the values of an object name.
  func references() -> Set<String> {
    let values = objects.values.flatMap { $0.values.map(\.value) }
    let names = values.flatMap { $0.matches(of: /\*(.+?)\*/).map { String($0.1) } }
    return Set(names).subtracting(Self.plain)
  }
}
