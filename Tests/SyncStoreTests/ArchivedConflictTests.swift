import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// A line of the file with older conflicts is read as it was written.
@Suite struct ArchivedConflictTests {
  private static let texts = [
    "", "a", "\"\\/",
    "\u{0}\u{1}\u{8}\t\n\u{B}\u{C}\r\u{F}\u{10}\u{1F}\u{7F}\u{80}\u{2028}\u{FEFF}",
    "é e\u{301} ß 😀 \u{10FFFF}", "\"}],", "inf", "null",
  ]

  private static let values: [Value] =
    texts.map { .text(Array($0.utf8)) } + texts.map { .blob(Array($0.utf8)) } + [
      .null, .integer(.min), .integer(.max), .integer(0), .real(0.1), .real(-0.0),
      .real(.leastNonzeroMagnitude),
      .real(.greatestFiniteMagnitude), .real(.infinity), .real(-.infinity), .text([0x61, 0xFF]),
      .text([0xED, 0xA0, 0x80]), .identity(RowIdentity(bytes: [0, 0x22, 0xFF])),
    ]

  private func entry(_ number: Int64, _ text: String, _ value: Value) -> ArchivedConflict {
    let content = ArchivedConflict.Content(value)
    let name = SQLName(text)
    let cells = [
      ArchivedConflict.Cell(column: nil, value: content),
      ArchivedConflict.Cell(column: name, value: content),
    ]
    return ArchivedConflict(
      number: number, at: -number, status: text, kind: text, table: name,
      identity: Data(text.utf8), key: cells, column: name, base: content,
      local: ArchivedConflict.Side(time: .max, client: text, cells: cells),
      remote: ArchivedConflict.Side(time: 0, client: nil, cells: []), rule: text, outcome: text,
      message: text)
  }

  @Test func aLineIsReadAsItWasWritten() throws {
    var entries: [ArchivedConflict] = []
    for text in Self.texts {
      for value in Self.values { entries.append(entry(.max, text, value)) }
    }
    var least = entry(.min + 1, "a", .null)
    least.key = []
    least.column = nil
    least.base = nil
    least.local = ArchivedConflict.Side()
    least.message = nil
    entries.append(least)
    for entry in entries {
      let line = entry.line
      #expect(!line.contains(UInt8(ascii: "\n")))
      let read = try JSONDecoder().decode(ArchivedConflict.self, from: Data(line))
      #expect(read == entry)
      #expect(read.line == line)
    }
  }

  @Test(arguments: values) func aValueIsReadAsItWasWritten(_ value: Value) throws {
    let line = entry(1, "a", value).line
    let read = try JSONDecoder().decode(ArchivedConflict.self, from: Data(line))
    let found = try #require(read.base).value
    #expect(found == value)
    if case .real(let number) = value, case .real(let other) = found {
      #expect(number.bitPattern == other.bitPattern)
    }
  }
}
