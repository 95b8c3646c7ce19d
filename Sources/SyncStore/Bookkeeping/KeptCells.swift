import GRDB
import SyncModel

/// The encoding of cells in bookkeeping: for each cell the column's bit as a varint, a kind byte
/// and the content.
enum KeptCells {
  static func encode(_ cells: [(column: Int, value: Value)]) -> [UInt8] {
    var bytes: [UInt8] = []
    for cell in cells {
      append(UInt64(cell.column), to: &bytes)
      bytes.append(cell.value.kind.rawValue)
      switch cell.value {
      case .null: break
      case .integer(let integer): append(UInt64(bitPattern: integer), to: &bytes)
      case .real(let real): append(real.bitPattern, to: &bytes)
      case .text(let content), .blob(let content): append(content, to: &bytes)
      case .identity(let row): append(row.bytes, to: &bytes)
      }
    }
    return bytes
  }

  static func decode(_ bytes: [UInt8]) throws -> [(column: Int, value: Value)] {
    var cells: [(column: Int, value: Value)] = []
    var index = 0
    while index < bytes.count {
      guard let column = Int(exactly: try varint(bytes, &index)) else { throw damage }
      guard index < bytes.count, let kind = ValueKind(rawValue: bytes[index]) else { throw damage }
      index += 1
      let value: Value
      switch kind {
      case .null: value = .null
      case .integer: value = .integer(Int64(bitPattern: try varint(bytes, &index)))
      case .real: value = .real(Double(bitPattern: try varint(bytes, &index)))
      case .text: value = .text(try content(bytes, &index))
      case .blob: value = .blob(try content(bytes, &index))
      case .identity: value = .identity(RowIdentity(bytes: try content(bytes, &index)))
      }
      cells.append((column, value))
    }
    return cells
  }

  private static var damage: DatabaseError {
    DatabaseError(
      resultCode: .SQLITE_CORRUPT, message: "docsync_kept or a table with cells is damaged")
  }

  private static func append(_ content: [UInt8], to bytes: inout [UInt8]) {
    append(UInt64(content.count), to: &bytes)
    bytes.append(contentsOf: content)
  }

  private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
    var value = value
    while value >= 128 {
      bytes.append(UInt8(truncatingIfNeeded: value) | 128)
      value >>= 7
    }
    bytes.append(UInt8(value))
  }

  private static func varint(_ bytes: [UInt8], _ index: inout Int) throws -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while shift < 64, index < bytes.count {
      let byte = bytes[index]
      index += 1
      value |= UInt64(byte & 127) << shift
      if byte < 128 { return value }
      shift += 7
    }
    throw damage
  }

  private static func content(_ bytes: [UInt8], _ index: inout Int) throws -> [UInt8] {
    let count = try varint(bytes, &index)
    guard count <= UInt64(bytes.count - index) else { throw damage }
    defer { index += Int(count) }
    return Array(bytes[index..<(index + Int(count))])
  }
}
