/// A value of a JSON file that an adapter keeps without knowing it.
enum JSONValue: Codable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case list([JSONValue])
  case object([String: JSONValue])

  /// The name of any member of an object.
  struct Name: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringLiteral name: String) { stringValue = name }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    func read<Value: Decodable>(_ type: Value.Type) throws -> Value? {
      do {
        return try value.decode(type)
      } catch {
        // It is of another type, or of none: then the last attempt throws.
        return nil
      }
    }
    if value.decodeNil() {
      self = .null
    } else if let bool = try read(Bool.self) {
      self = .bool(bool)
    } else if let text = try read(String.self) {
      self = .text(text)
    } else if let integer = try read(Int64.self) {
      self = .integer(integer)
    } else if let number = try read(Double.self) {
      self = .number(number)
    } else if let list = try read([JSONValue].self) {
      self = .list(list)
    } else {
      self = .object(try value.decode([String: JSONValue].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .text(let value): try container.encode(value)
    case .list(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}
