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

extension ArchivedConflict {
  /// The entry as `JSONDecoder` reads it.
  var line: [UInt8] {
    var line = JSONLine()
    line.object {
      $0.member("number", number)
      $0.member("at", at)
      $0.member("status", status)
      $0.member("kind", kind)
      $0.member("table", table.text)
      $0.member("identity", identity)
      $0.member("key", key, Cell.write)
      $0.member("column", column?.text)
      $0.member("base", base) { $1.write(to: &$0) }
      $0.member("local", local) { $1.write(to: &$0) }
      $0.member("remote", remote) { $1.write(to: &$0) }
      $0.member("rule", rule)
      $0.member("outcome", outcome)
      $0.member("message", message)
    }
    return line.bytes
  }
}

extension ArchivedConflict.Content {
  fileprivate func write(to line: inout JSONLine) {
    line.object {
      $0.member("integer", integer)
      $0.member("real", real)
      $0.member("text", text)
      $0.member("bytes", bytes)
      $0.member("blob", blob)
      $0.member("row", row)
    }
  }
}

extension ArchivedConflict.Cell {
  fileprivate static func write(_ line: inout JSONLine, _ cells: [Self]) {
    line.array(cells) { line, cell in
      line.object {
        $0.member("column", cell.column?.text)
        $0.member("value", cell.value) { $1.write(to: &$0) }
      }
    }
  }
}

extension ArchivedConflict.Side {
  fileprivate func write(to line: inout JSONLine) {
    line.object {
      $0.member("time", time)
      $0.member("client", client)
      $0.member("cells", cells, ArchivedConflict.Cell.write)
    }
  }
}
