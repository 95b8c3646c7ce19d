import DocumentSync
import Foundation
import SyncModel

/// Returns rows of cells as aligned lines. The last column is not padded.
func alignedLines(_ rows: [[String]], indent: Int = 0, gap: Int = 2) -> [String] {
  let columns = rows.map(\.count).max() ?? 0
  let widths = (0..<columns).map { column in
    rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
  }
  return rows.map { row in
    var line = String(repeating: " ", count: indent)
    for (column, cell) in row.enumerated() {
      line += cell
      if column + 1 < row.count {
        line += String(repeating: " ", count: widths[column] - cell.count + gap)
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
    String(repeating: " ", count: max(0, width - count)) + self
  }
}
