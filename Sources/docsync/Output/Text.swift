import DocumentSync
import Foundation
import SyncModel

/// Returns rows of cells as aligned lines. The last column is not padded.
func alignedLines(_ rows: [[String]], indent: Int = 0, gap: Int = 2) -> [String] {
  let columns = rows.map(\.count).max() ?? 0
  let widths = (0..<columns).map { column in
    rows.map { column < $0.count ? $0[column].columns : 0 }.max() ?? 0
  }
  return rows.map { row in
    var line = String(repeating: " ", count: indent)
    for (column, cell) in row.enumerated() {
      line += cell
      if column + 1 < row.count {
        line += String(repeating: " ", count: widths[column] - cell.columns + gap)
      }
    }
    return line
  }
}

/// Returns a count with its noun: “1 row”, “2 rows”.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// Returns a number of bytes in a readable unit.
func byteText(_ count: Int) -> String {
  var value = Double(count)
  for unit in ["bytes", "KB", "MB", "GB"] {
    if value < 1000 {
      return unit == "bytes" ? "\(count) bytes" : String(format: "%.1f \(unit)", value)
    }
    value /= 1000
  }
  return String(format: "%.1f TB", value)
}

/// Returns bytes as hexadecimal digits.
func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
  bytes.map { byte in
    let digits = String(byte, radix: 16)
    return byte < 16 ? "0" + digits : digits
  }.joined()
}

/// Returns a time, given in milliseconds since 1970, in local time to the second.
func timeText(_ milliseconds: Int64) -> String {
  let formatter = DateFormatter()
  formatter.locale = Locale(identifier: "en_US_POSIX")
  formatter.dateFormat = "yyyy-MM-dd HH:mm:ss"
  return formatter.string(from: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
}

/// Returns a text in a form that a shell reads as one argument.
func shellWord(_ text: String) -> String {
  let plain = text.utf8.allSatisfy { byte in
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
      || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "/._-+=:,@%".utf8.contains(byte)
      || byte >= 0x80
  }
  if plain, !text.isEmpty, !text.hasPrefix("-") { return text }
  return "'" + text.replacingOccurrences(of: "'", with: "'\\''") + "'"
}

/// Returns a name that is safe to show.
func printable(_ name: SQLName) -> String { printable(name.text) }

/// Returns text from elsewhere that is safe to show on one line. It escapes, like `\u{1b}`,
/// characters that could move the cursor, change the terminal or change the direction of text.
func printable(_ text: String) -> String {
  guard text.unicodeScalars.contains(where: \.isUnsafeToShow) else { return text }
  var result = ""
  for scalar in text.unicodeScalars {
    if scalar.isUnsafeToShow {
      result += "\\u{\(String(scalar.value, radix: 16))}"
    } else {
      result.unicodeScalars.append(scalar)
    }
  }
  return result
}

extension Unicode.Scalar {
  /// Whether a terminal may act on the character instead of showing it: controls of both sets, line
  /// separators, overrides and isolates of direction, and other invisible characters. Those that
  /// join letters and emoji are safe.
  var isUnsafeToShow: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    case .format: !["\u{200C}", "\u{200D}", "\u{AD}"].contains(self)
    default: false
    }
  }
}

extension String {
  /// Returns the text with spaces before it up to a width.
  func leftPadded(to width: Int) -> String {
    String(repeating: " ", count: max(0, width - columns)) + self
  }

  /// The number of columns that a terminal needs for the text.
  var columns: Int { reduce(0) { $0 + $1.columns } }
}

extension Character {
  /// The blocks of characters that a terminal shows in two columns (East Asian Width W and F,
  /// Unicode Standard Annex #11).
  private static let wideBlocks: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3,
    0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F,
    0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
  ]

  /// The number of columns that a terminal needs for the character.
  fileprivate var columns: Int {
    let isWide = unicodeScalars.contains { scalar in
      scalar.properties.isEmojiPresentation || scalar == "\u{FE0F}"
        || Self.wideBlocks.contains { $0.contains(scalar.value) }
    }
    return isWide ? 2 : 1
  }
}
