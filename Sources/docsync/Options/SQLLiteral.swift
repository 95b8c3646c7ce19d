import ArgumentParser
import Foundation
import SyncModel

/// A value that the user writes as in SQL; any other argument is text.
struct SQLLiteral: ExpressibleByArgument, Sendable {
  var value: Value

  init(argument: String) {
    if argument.uppercased() == "NULL" {
      value = .null
    } else if let integer = Int64(argument) {
      value = .integer(integer)
    } else if let real = Self.real(argument) {
      value = .real(real)
    } else if let content = Self.quoted(argument) {
      value = .text(content.replacingOccurrences(of: "''", with: "'"))
    } else if argument.first?.lowercased() == "x",
      let digits = Self.quoted(String(argument.dropFirst())), let bytes = Self.bytes(digits)
    {
      value = .blob(bytes)
    } else {
      value = .text(argument)
    }
  }

  /// Parses a real as SQL writes it. SQL has no literals for NaN and infinity.
  private static func real(_ text: String) -> Double? {
    guard text.contains(where: \.isNumber), text.allSatisfy({ "0123456789+-.eE".contains($0) })
    else { return nil }
    return Double(text)
  }

  /// Returns the content if single quotes enclose the whole text.
  private static func quoted(_ text: String) -> String? {
    guard text.count >= 2, text.hasPrefix("'"), text.hasSuffix("'") else { return nil }
    let content = String(text.dropFirst().dropLast())
    return content.replacingOccurrences(of: "''", with: "").contains("'") ? nil : content
  }

  private static func bytes(_ digits: String) -> [UInt8]? {
    let digits = Array(digits.utf8)
    guard digits.count % 2 == 0 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      let pair = String(decoding: digits[index...(index + 1)], as: UTF8.self)
      guard pair.allSatisfy(\.isHexDigit), let byte = UInt8(pair, radix: 16) else { return nil }
      bytes.append(byte)
    }
    return bytes
  }
}
