import Foundation
import Testing

/// A page of the documentation, and the keys of JSON objects that it names.
struct Page {
  let text: String

  /// Reads a page below the top of the package.
  init(_ path: String) throws {
    text = try String(
      contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../../" + path), encoding: .utf8)
  }

  /// Keys, and whether each may be missing.
  typealias Keys = [String: Bool]

  /// The keys of an object that an item of a list defines: “- *name*: `key`,
  /// `key`?: what it is.” What is in parentheses or braces does not count.
  func keys(ofItem name: String) throws -> Keys {
    let start = try #require(text.range(of: "\n- *\(name)*: "), "no item \(name)")
    let rest = text[start.upperBound...]
    let end = rest.range(of: "\n- ")?.lowerBound ?? rest.endIndex
    var item = String(rest[..<end])
    for nested in [/\([^()]*\)/, /\{[^{}]*\}/] { item = item.replacing(nested, with: "") }
    return Self.keys(in: item)
  }

  /// What the item says of a key, in parentheses behind it: its values.
  func values(ofItem name: String, key: String) throws -> Set<String> {
    let start = try #require(text.range(of: "\n- *\(name)*: "), "no item \(name)")
    let rest = text[start.upperBound...]
    let open = try #require(rest.range(of: "`\(key)`"), "no key \(key)").upperBound
    let list = try #require(rest[open...].firstMatch(of: /\A\s+\(([^()]*)\)/), "no values").1
    return Set(Self.keys(in: String(list)).keys)
  }

  /// The keys of the table below a heading, by its first column.
  func keys(below heading: String) throws -> Keys {
    let start = try #require(text.range(of: "\n### \(heading)"), "no heading \(heading)")
    let rest = text[start.upperBound...]
    let section = rest[..<(rest.range(of: "\n### ")?.lowerBound ?? rest.endIndex)]
    var keys: Keys = [:]
    for line in section.split(separator: "\n") where line.hasPrefix("| `") {
      let cell = line.dropFirst(2).prefix { $0 != "|" }
      keys.merge(Self.keys(in: String(cell))) { first, _ in first }
    }
    return keys
  }

  private static func keys(in text: String) -> Keys {
    Keys(
      text.matches(of: /`([A-Za-z]+)`(\?)?/).map { (String($0.1), $0.2 != nil) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The keys of what has all that it may have, and of what has only what it
  /// must.
  static func keys(full: some Encodable, least: some Encodable) throws -> Keys {
    let always = try Self.keys(least)
    let all = try Self.keys(full)
    #expect(all.isSuperset(of: always))
    return Keys(uniqueKeysWithValues: all.map { ($0, !always.contains($0)) })
  }

  private static func keys(_ value: some Encodable) throws -> Set<String> {
    let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(value))
    return Set(try #require(object as? [String: Any]).keys)
  }
}
