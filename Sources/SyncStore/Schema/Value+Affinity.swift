import Foundation
import SyncModel

extension Value {
  /// Returns the integer key in a value, or `nil` if it has none. A reference may be stored as text
  /// or as a double if its column has another affinity.
  static func key(_ value: Value) -> Int64? {
    switch value {
    case .integer(let key): key
    case .real(let real): Int64(exactly: real)
    case .text(let text): Int64(String(decoding: text, as: UTF8.self))
    case .null, .blob, .identity: nil
    }
  }

  /// Returns the integer key that SQLite finds in a reference, or `nil` if it finds none: `'3'`,
  /// `' 3'`, `'03'`, `'3.0'` and `3.0` refer to row 3.
  ///
  /// <https://www.sqlite.org/foreignkeys.html>, section 3
  static func referredKey(_ value: Value) -> Int64? {
    switch value {
    case .integer(let key): key
    case .real(let real): Int64(exactly: real)
    case .text(let text):
      switch number(text) {
      case .integer(let key): key
      case .real(let real): Int64(exactly: real)
      default: nil
      }
    case .null, .blob, .identity: nil
    }
  }

  /// Returns the value as a column with an affinity compares it: a reference is compared by the
  /// affinity of the column that it refers to.
  ///
  /// <https://www.sqlite.org/foreignkeys.html>, section 3, and
  /// <https://www.sqlite.org/datatype3.html>, section 3
  func applying(_ affinity: ColumnSchema.Affinity) -> Value {
    switch (affinity, self) {
    case (.text, .integer(let integer)): return .text("\(integer)")
    case (.text, .real(let real)): return .text(Self.text(real))
    case (.integer, .text(let text)), (.numeric, .text(let text)), (.real, .text(let text)):
      return Self.number(text) ?? self
    default: return self
    }
  }

  /// Returns the number as a column with an affinity stores it.
  ///
  /// <https://www.sqlite.org/datatype3.html>, sections 2 and 3.1: a real that
  /// is an integer becomes one, if it is not at the limits.
  func stored(with affinity: ColumnSchema.Affinity) -> Value {
    switch (affinity, self) {
    case (.integer, .real(let real)), (.numeric, .real(let real)):
      guard let integer = Int64(exactly: real), integer != .min, integer != .max else {
        return self
      }
      return .integer(integer)
    case (.real, .integer(let integer)): return .real(Double(integer))
    default: return self
    }
  }

  /// Returns the value as a column with an affinity stores it.
  func converted(to affinity: ColumnSchema.Affinity) -> Value {
    applying(affinity).stored(with: affinity)
  }

  private static func number(_ text: [UInt8]) -> Value? {
    guard !text.contains(0) else { return nil }
    let trimmed = String(decoding: text, as: UTF8.self)
      .trimmingCharacters(in: CharacterSet(charactersIn: " \t\n\u{B}\u{C}\r"))
    let isSigned = trimmed.hasPrefix("+") || trimmed.hasPrefix("-")
    // Words such as “-Inf” are no numbers to SQLite.
    guard let first = trimmed.utf8.dropFirst(isSigned ? 1 : 0).first,
      !trimmed.contains("x"), !trimmed.contains("X"),
      first == UInt8(ascii: ".") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first)
    else { return nil }
    if let integer = Int64(trimmed) { return .integer(integer) }
    return Double(trimmed).flatMap { $0.isNaN ? nil : .real($0) }
  }

  /// Returns a real as SQLite writes it.
  private static func text(_ real: Double) -> String {
    if real.isInfinite { return real < 0 ? "-Inf" : "Inf" }
    // SQLite knows no negative zero in text.
    if real == 0 { return "0.0" }
    var text = String(format: "%.15g", real)
    guard !text.contains(".") else { return text }
    if let exponent = text.firstIndex(of: "e") {
      text.insert(contentsOf: ".0", at: exponent)
    } else {
      text += ".0"
    }
    return text
  }
}

extension ColumnSchema {
  /// Returns a value that bookkeeping stores as the column would store it now: the type of the
  /// column may have changed since, on another device before it stored the value.
  func inPresentForm(_ value: Value) -> Value {
    if case .key = domain { value } else { value.converted(to: affinity) }
  }
}
