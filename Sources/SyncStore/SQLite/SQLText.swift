import Foundation
import GRDB

/// A statement, or a part of one, that is compared byte by byte: `String` treats two statements as
/// equal if Unicode treats their names as equal (see ``SQLName``).
struct SQLText: Hashable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (left: SQLText, right: SQLText) -> Bool {
    let count = left.text.utf8.count
    guard count == right.text.utf8.count else { return false }
    var (left, right) = (left.text, right.text)
    return left.withUTF8 { left in
      right.withUTF8 { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return true }
        return memcmp(left, right, count) == 0
      }
    }
  }

  func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension SQLText: Codable, DatabaseValueConvertible {
  init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  var databaseValue: DatabaseValue { text.databaseValue }

  static func fromDatabaseValue(_ value: DatabaseValue) -> SQLText? {
    String.fromDatabaseValue(value).map(SQLText.init)
  }
}
