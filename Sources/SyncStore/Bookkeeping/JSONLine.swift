import Foundation

/// Writes one line of JSON (RFC 8259). `JSONEncoder` takes ten times as long, and a synchronization
/// can have tens of thousands of conflicts.
struct JSONLine {
  private(set) var bytes: [UInt8] = []
  /// Whether the object or array that is being written has an element.
  private var hasElements = false

  /// Writes an object, of which `body` writes the members.
  mutating func object(_ body: (inout JSONLine) -> Void) {
    enclose(UInt8(ascii: "{"), UInt8(ascii: "}"), body)
  }

  /// Writes an array, of which `element` writes each element.
  mutating func array<Element>(
    _ elements: [Element], _ element: (inout JSONLine, Element) -> Void
  ) {
    enclose(UInt8(ascii: "["), UInt8(ascii: "]")) { line in
      for content in elements {
        line.separate()
        element(&line, content)
      }
    }
  }

  /// Writes a member of an object; nothing if there is no value.
  mutating func member<Content>(
    _ name: StaticString, _ value: Content?, _ write: (inout JSONLine, Content) -> Void
  ) {
    guard let value else { return }
    separate()
    bytes.append(UInt8(ascii: "\""))
    name.withUTF8Buffer { bytes += $0 }
    bytes += [UInt8(ascii: "\""), UInt8(ascii: ":")]
    write(&self, value)
  }

  mutating func member(_ name: StaticString, _ value: String?) {
    member(name, value) { $0.string($1) }
  }

  mutating func member(_ name: StaticString, _ value: (some BinaryInteger)?) {
    member(name, value) { $0.bytes += Array("\($1)".utf8) }
  }

  /// Writes bytes as base64.
  mutating func member(_ name: StaticString, _ value: Data?) {
    member(name, value) { $0.string($1.base64EncodedString()) }
  }

  private mutating func string(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for unit in text.utf8 {
      switch unit {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), unit]
      case ..<0x20: bytes += Array("\\u00\(unit < 0x10 ? "0" : "")\(String(unit, radix: 16))".utf8)
      default: bytes.append(unit)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private mutating func enclose(
    _ begin: UInt8, _ end: UInt8, _ body: (inout JSONLine) -> Void
  ) {
    bytes.append(begin)
    hasElements = false
    body(&self)
    bytes.append(end)
    hasElements = true
  }

  private mutating func separate() {
    if hasElements { bytes.append(UInt8(ascii: ",")) }
    hasElements = true
  }
}
