import Foundation

/// One object of an application's model, as it is synchronized.
///
/// A record is complete: a field that it does not have is ``ModelValue/null``. Two records are equal if
/// their identities and all values are.
public struct ModelRecord: Hashable, Sendable, Codable, Identifiable {
  /// The name of a record on all devices: its type, and a text that is unique in that type.
  public struct ID: Sendable {
    /// The name of the ``ModelSchema/RecordType``.
    public var type: String
    /// The text that the application gave the record when it was created, such as a UUID. It never
    /// changes.
    public var identity: String

    /// Creates the name of a record.
    public init(type: String, identity: String) {
      self.type = type
      self.identity = identity
    }
  }

  /// The name of the record.
  public let id: ID
  /// The values that are not ``ModelValue/null``, by the names of their fields.
  public private(set) var fields: [String: ModelValue]

  /// Creates a record.
  ///
  /// - Parameters:
  ///   - id: The name of the record.
  ///   - fields: The values. A field that is not here is null.
  public init(id: ID, fields: [String: ModelValue] = [:]) {
    self.id = id
    self.fields = fields.filter { $0.value != .null }
  }

  /// Creates a record from its type, its identity and its values.
  public init(type: String, identity: String, fields: [String: ModelValue] = [:]) {
    self.init(id: ID(type: type, identity: identity), fields: fields)
  }

  /// The value of a field.
  public subscript(field: String) -> ModelValue {
    get { fields[field] ?? .null }
    set { fields[field] = newValue == .null ? nil : newValue }
  }

  /// The records that this one refers to.
  var references: [ID] {
    fields.values.compactMap { if case .reference(let id) = $0 { id } else { nil } }
  }
}

/// Texts are compared byte by byte, as SQLite does: “é” as one character and as two are two identities.
extension ModelRecord.ID: Hashable, Comparable, Codable, CustomStringConvertible {
  /// Returns whether both name the same record.
  public static func == (left: Self, right: Self) -> Bool {
    left.type.utf8.elementsEqual(right.type.utf8)
      && left.identity.utf8.elementsEqual(right.identity.utf8)
  }

  /// Adds the bytes to a hash.
  public func hash(into hasher: inout Hasher) {
    for text in [type, identity] {
      for byte in text.utf8 { hasher.combine(byte) }
      hasher.combine(0 as UInt8)
    }
  }

  /// Returns whether one comes before another: by type, then by identity.
  public static func < (left: Self, right: Self) -> Bool {
    if !left.type.utf8.elementsEqual(right.type.utf8) {
      return left.type.utf8.lexicographicallyPrecedes(right.type.utf8)
    }
    return left.identity.utf8.lexicographicallyPrecedes(right.identity.utf8)
  }

  /// The type and the identity.
  public var description: String { "\(type) “\(identity)”" }
}

/// The value of a field of a ``ModelRecord``.
public enum ModelValue: Sendable {
  /// The absence of a value.
  case null
  /// A whole number of 64 bits.
  case integer(Int64)
  /// A number; never NaN.
  case real(Double)
  /// A text, without NUL.
  case text(String)
  /// Bytes.
  case data(Data)
  /// Another record.
  case reference(ModelRecord.ID)
}

extension ModelValue: Hashable {
  /// Returns whether two values have the same kind and the same bytes.
  public static func == (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.integer(let left), .integer(let right)): left == right
    case (.real(let left), .real(let right)): left == right || left.isNaN && right.isNaN
    case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
    case (.data(let left), .data(let right)): left == right
    case (.reference(let left), .reference(let right)): left == right
    default: false
    }
  }

  /// Adds the value to a hash.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0 as UInt8)
    case .integer(let value): hasher.combine(value)
    case .real(let value): hasher.combine(value)
    case .text(let value): for byte in value.utf8 { hasher.combine(byte) }
    case .data(let value): hasher.combine(value)
    case .reference(let id): hasher.combine(id)
    }
  }
}

/// In JSON a value is an object with one member, whose name is the kind: `{"text": "…"}`. A number with a
/// fraction is a text, since JSON has no infinity; data is in Base64.
extension ModelValue: Codable {
  private enum Kind: String, CodingKey { case null, integer, real, text, data, reference }

  /// Reads the object.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: Kind.self)
    guard let kind = values.allKeys.first, values.allKeys.count == 1 else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "a value has one kind"))
    }
    switch kind {
    case .null: self = .null
    case .integer: self = .integer(try values.decode(Int64.self, forKey: kind))
    case .real:
      guard let number = Double(try values.decode(String.self, forKey: kind)) else {
        throw DecodingError.dataCorruptedError(
          forKey: kind, in: values, debugDescription: "this is no number")
      }
      self = .real(number)
    case .text: self = .text(try values.decode(String.self, forKey: kind))
    case .data: self = .data(try values.decode(Data.self, forKey: kind))
    case .reference: self = .reference(try values.decode(ModelRecord.ID.self, forKey: kind))
    }
  }

  /// Writes the object.
  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Kind.self)
    switch self {
    case .null: try values.encodeNil(forKey: .null)
    case .integer(let value): try values.encode(value, forKey: .integer)
    case .real(let value): try values.encode("\(value)", forKey: .real)
    case .text(let value): try values.encode(value, forKey: .text)
    case .data(let value): try values.encode(value, forKey: .data)
    case .reference(let id): try values.encode(id, forKey: .reference)
    }
  }
}
