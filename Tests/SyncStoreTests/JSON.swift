/// A JSON document as it is written.
enum JSON: Hashable, Sendable {
  case null
  case flag(Bool)
  case integer(Int64)
  case real(Double)
  case text(String)
  case array([JSON])
  case object([String: JSON])
}

extension JSON: Decodable {
  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
      return
    }
    if let object = try Self.object(decoder) {
      self = .object(object)
      return
    }
    if let array = try Self.array(decoder) {
      self = .array(array)
      return
    }
    if let flag = try Self.attempt({ try value.decode(Bool.self) }) {
      self = .flag(flag)
    } else if let real = try Self.attempt({ try value.decode(Double.self) }) {
      let isInteger = real.rounded() == real && real.magnitude < 0x1p63
      self = isInteger ? .integer(try value.decode(Int64.self)) : .real(real)
    } else {
      self = .text(try value.decode(String.self))
    }
  }

  private static func object(_ decoder: any Decoder) throws -> [String: JSON]? {
    guard let container = try attempt({ try decoder.container(keyedBy: Key.self) }) else {
      return nil
    }
    var members: [String: JSON] = [:]
    for key in container.allKeys {
      members[key.stringValue] = try container.decode(JSON.self, forKey: key)
    }
    return members
  }

  private static func array(_ decoder: any Decoder) throws -> [JSON]? {
    guard var container = try attempt({ try decoder.unkeyedContainer() }) else { return nil }
    var items: [JSON] = []
    while !container.isAtEnd { items.append(try container.decode(JSON.self)) }
    return items
  }

  /// `nil` if the document has something else at this place.
  private static func attempt<Result>(_ body: () throws -> Result) throws -> Result? {
    do {
      return try body()
    } catch DecodingError.typeMismatch {
      return nil
    }
  }
}

/// An object that is read key by key; what is left over is an error.
struct JSONObject {
  private(set) var members: [String: JSON]
  /// Where it is, for errors.
  var path: String

  init(_ json: JSON, at path: String) throws {
    guard case .object(let members) = json else {
      throw MergeCaseError(description: "\(path): not an object: \(json)")
    }
    self.members = members
    self.path = path
  }

  func error(_ message: String) -> MergeCaseError {
    MergeCaseError(description: "\(path): \(message)")
  }

  /// Takes a member out; `nil` if it is not there. A null is a value.
  mutating func value(_ key: String) throws -> JSON? { members.removeValue(forKey: key) }

  mutating func text(_ key: String) throws -> String {
    guard let text = try optionalText(key) else { throw error("“\(key)” is missing") }
    return text
  }

  mutating func optionalText(_ key: String) throws -> String? {
    switch members.removeValue(forKey: key) {
    case nil: return nil
    case .text(let text): return text
    default: throw error("“\(key)” has to be a text")
    }
  }

  /// An array of texts, or one text.
  mutating func texts(_ key: String) throws -> [String]? {
    if case .text(let text)? = members[key] {
      members[key] = nil
      return [text]
    }
    return try array(key)?.map { item in
      guard case .text(let text) = item else { throw error("“\(key)” has to consist of texts") }
      return text
    }
  }

  mutating func array(_ key: String) throws -> [JSON]? {
    switch members.removeValue(forKey: key) {
    case nil: return nil
    case .array(let items): return items
    default: throw error("“\(key)” has to be an array")
    }
  }

  mutating func integer(_ key: String) throws -> Int? {
    switch members.removeValue(forKey: key) {
    case nil: return nil
    case .integer(let integer): return Int(integer)
    default: throw error("“\(key)” has to be an integer")
    }
  }

  mutating func flag(_ key: String) throws -> Bool? {
    switch members.removeValue(forKey: key) {
    case nil: return nil
    case .flag(let flag): return flag
    default: throw error("“\(key)” has to be true or false")
    }
  }

  func finish() throws {
    guard members.isEmpty else {
      throw error("unknown: \(members.keys.sorted().joined(separator: ", "))")
    }
  }
}
