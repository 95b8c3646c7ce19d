import SyncModel

/// A value in JSON: a number, text, null, or, for other values, an object with one key.
struct ValueJSON: Encodable, Sendable {
  var value: Value

  init(_ value: Value) { self.value = value }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch value {
    case .null: try container.encodeNil()
    case .integer(let integer): try container.encode(integer)
    case .real(let real) where real.isFinite: try container.encode(real)
    case .real(let real): try container.encode(["real": "\(real)"])
    case .text(let bytes):
      if let text = String(validating: bytes, as: UTF8.self) {
        try container.encode(text)
      } else {
        try container.encode(["text": hexadecimal(bytes)])
      }
    case .blob(let bytes): try container.encode(["blob": hexadecimal(bytes)])
    case .identity(let row): try container.encode(["row": hexadecimal(row.bytes)])
    }
  }

  /// The value as SQL writes it, for people; a long value is cut.
  var text: String {
    switch value {
    case .text(let bytes): "'" + Self.cut(printable(String(decoding: bytes, as: UTF8.self))) + "'"
    case .blob(let bytes): "x'" + Self.cut(hexadecimal(bytes.prefix(40))) + "'"
    default: wholeText
    }
  }

  /// The value as SQL writes it, for people.
  var wholeText: String {
    switch value {
    case .null: "NULL"
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let bytes): "'" + printable(String(decoding: bytes, as: UTF8.self)) + "'"
    case .blob(let bytes): "x'" + hexadecimal(bytes) + "'"
    // Identities of rows that were there before synchronization differ at the end only.
    case .identity(let row):
      "row \(hexadecimal(row.bytes.prefix(4)))…\(hexadecimal(row.bytes.suffix(4)))"
    }
  }

  private static func cut(_ text: String) -> String {
    text.count <= 40 ? text : text.prefix(39) + "…"
  }
}
