/// An application's notes about itself, a client or a document, for its own
/// use: names with JSON values.
public typealias SyncUserInfo = [String: SyncDescriptions.UserInfoValue]
extension SyncDescriptions {
  /// A JSON value.
  public enum UserInfoValue: Hashable, Sendable {
    /// Nothing.
    case null
    /// True or false.
    case boolean(Bool)
    /// A whole number.
    case integer(Int64)
    /// Any other number that is finite.
    case number(Double)
    /// A text of any length.
    case text(String)
    /// Values in order.
    case list([SyncDescriptions.UserInfoValue])
    /// Values by name.
    case dictionary([String: SyncDescriptions.UserInfoValue])
  }
}

extension SyncDescriptions.UserInfoValue: Codable {
  /// Reads any JSON value.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = Self.value(container, Bool.self) {
      self = .boolean(value)
    } else if let value = Self.value(container, Int64.self) {
      self = .integer(value)
    } else if let value = Self.value(container, Double.self) {
      self = .number(value)
    } else if let value = Self.value(container, String.self) {
      self = .text(value)
    } else if let value = Self.value(container, [SyncDescriptions.UserInfoValue].self) {
      self = .list(value)
    } else {
      self = .dictionary(try container.decode([String: SyncDescriptions.UserInfoValue].self))
    }
  }

  /// Decodes a value of the type; `nil` if the value is of another type.
  private static func value<Value: Decodable>(
    _ container: any SingleValueDecodingContainer, _ type: Value.Type
  ) -> Value? {
    do {
      return try container.decode(type)
    } catch {
      // The value is of another type, which the following attempts find.
      return nil
    }
  }

  /// Writes the JSON value.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .text(let value): try container.encode(value)
    case .list(let value): try container.encode(value)
    case .dictionary(let value): try container.encode(value)
    }
  }
}

extension SyncDescriptions.UserInfoValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral
{
  /// Text.
  public init(stringLiteral value: String) { self = .text(value) }
  /// A whole number.
  public init(integerLiteral value: Int64) { self = .integer(value) }
  /// True or false.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// A number.
  public init(floatLiteral value: Double) { self = .number(value) }
}
