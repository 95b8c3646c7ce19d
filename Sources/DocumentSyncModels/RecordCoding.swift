import Foundation

/// The fields of a record as bytes, for the tables of a mirror that stay on the device. Equal fields have equal
/// bytes.
///
/// The first byte is 1. Then follow, for each field in order of the names: the length of the name and the name, the kind,
/// the length of the value and the value. A reference is the lengths and bytes of its type and its identity.
enum RecordCoding {
  /// Bytes that ``encode(_:)`` has not made.
  struct Malformed: Error {}

  private enum Kind: UInt8 {
    case integer = 1
    case real
    case text
    case data
    case reference
  }

  static func encode(_ fields: [String: ModelValue]) -> Data {
    // An empty blob might become NULL on its way.
    var data = Data([1])
    for (name, value) in fields.sorted(by: {
      $0.key.utf8.lexicographicallyPrecedes($1.key.utf8)
    }) {
      // Records have no such values.
      guard value != .null else { continue }
      append(Data(name.utf8), to: &data)
      switch value {
      case .null: break
      case .integer(let value): append(.integer, bytes(UInt64(bitPattern: value)), to: &data)
      case .real(let value):
        append(.real, bytes((value == 0 ? 0 : value).bitPattern), to: &data)
      case .text(let value): append(.text, Data(value.utf8), to: &data)
      case .data(let value): append(.data, value, to: &data)
      case .reference(let id):
        var both = Data()
        append(Data(id.type.utf8), to: &both)
        append(Data(id.identity.utf8), to: &both)
        append(.reference, both, to: &data)
      }
    }
    return data
  }

  static func decode(_ data: Data) throws -> [String: ModelValue] {
    var rest = data[...]
    guard rest.popFirst() == 1 else { throw Malformed() }
    var fields: [String: ModelValue] = [:]
    while !rest.isEmpty {
      let name = String(decoding: try part(&rest), as: UTF8.self)
      guard let kind = Kind(rawValue: rest.popFirst() ?? 0) else { throw Malformed() }
      var value = try part(&rest)
      switch kind {
      case .integer: fields[name] = .integer(Int64(bitPattern: try number(value)))
      case .real: fields[name] = .real(Double(bitPattern: try number(value)))
      case .text: fields[name] = .text(String(decoding: value, as: UTF8.self))
      case .data: fields[name] = .data(Data(value))
      case .reference:
        let type = String(decoding: try part(&value), as: UTF8.self)
        let identity = String(decoding: try part(&value), as: UTF8.self)
        fields[name] = .reference(.init(type: type, identity: identity))
      }
    }
    return fields
  }

  private static func append(_ kind: Kind, _ value: Data, to data: inout Data) {
    data.append(kind.rawValue)
    append(value, to: &data)
  }

  private static func append(_ part: Data, to data: inout Data) {
    data.append(bytes(UInt64(part.count)))
    data.append(part)
  }

  private static func bytes(_ number: UInt64) -> Data {
    withUnsafeBytes(of: number.littleEndian) { Data($0) }
  }

  private static func number(_ bytes: Data) throws -> UInt64 {
    guard bytes.count == 8 else { throw Malformed() }
    return bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func part(_ rest: inout Data) throws -> Data {
    guard rest.count >= 8 else { throw Malformed() }
    let count = try number(rest.prefix(8))
    rest = rest.dropFirst(8)
    guard count <= UInt64(rest.count) else { throw Malformed() }
    defer { rest = rest.dropFirst(Int(count)) }
    return rest.prefix(Int(count))
  }
}
