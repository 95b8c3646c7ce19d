import GRDB
import SyncModel

/// A row, or some of its cells, for which this store has no table or no column.
struct ForeignRow {
  /// A cell, with the number of its column.
  struct Cell {
    var column: Int
    var value: Value
    var stamp: LocalStamp
  }

  /// Whether the row exists; `unsaid` if the store has its table.
  var existence = RowState.Existence.unsaid
  var existenceStamp = LocalStamp.zero
  /// The stamp of the newest deletion that erased all older cells; zero if there is none, or if the
  /// store has the table.
  var erasureStamp = LocalStamp.zero
  /// The key of the row on its author's device.
  var keyHint: Int64?
  /// The new identity of a deleted row that moved.
  var destination: RowIdentity?
  /// In order of column.
  var cells: [Cell] = []

  /// Whether nothing of the row is left to store.
  var isEmpty: Bool { existence == .unsaid && cells.isEmpty }

  /// Merges a cell: the newer value wins.
  mutating func merge(_ cell: Cell, _ precedes: (LocalStamp, LocalStamp) -> Bool) {
    if erasureStamp != .zero, !precedes(erasureStamp, cell.stamp) { return }
    let position = cells.firstIndex { $0.column >= cell.column } ?? cells.count
    guard position < cells.count, cells[position].column == cell.column else {
      return cells.insert(cell, at: position)
    }
    let known = cells[position]
    if precedes(known.stamp, cell.stamp)
      || known.stamp == cell.stamp && cell.stamp != .zero && known.value.yields(to: cell.value)
    {
      cells[position] = cell
    }
  }

  /// Merges a change of the row's existence: the newer one wins.
  mutating func merge(
    _ existence: RowState.Existence, _ stamp: LocalStamp, destination: RowIdentity?,
    _ precedes: (LocalStamp, LocalStamp) -> Bool
  ) {
    guard self.existence == .unsaid || precedes(existenceStamp, stamp) else {
      if stamp == existenceStamp {
        RowState.Existence.settle(
          &self.existence, &self.destination, with: existence, destination)
      }
      return
    }
    self.existence = existence
    existenceStamp = stamp
    self.destination = destination
  }

  /// Records a deletion that erases cells, and removes the cells that are not newer.
  mutating func erase(
    before stamp: LocalStamp, _ precedes: (LocalStamp, LocalStamp) -> Bool
  ) {
    guard precedes(erasureStamp, stamp) else { return }
    erasureStamp = stamp
    cells.removeAll { !precedes(stamp, $0.stamp) }
  }
}

// MARK: - Bytes

extension ForeignRow {
  /// The encoded row: its existence with the stamp; the stamp `erasureStamp`; whether there is a key
  /// hint, and the hint; whether there is a destination, and the destination; the number and the
  /// stamps of the cells; their columns and values.
  var bytes: [UInt8] {
    var bytes: [UInt8] = [existence.rawValue]
    Self.append(existenceStamp, to: &bytes)
    Self.append(erasureStamp, to: &bytes)
    bytes.append(keyHint == nil ? 0 : 1)
    if let keyHint { Self.append(UInt64(bitPattern: keyHint), to: &bytes) }
    bytes.append(destination == nil ? 0 : 1)
    if let destination {
      Self.append(UInt64(destination.bytes.count), to: &bytes)
      bytes += destination.bytes
    }
    Self.append(UInt64(cells.count), to: &bytes)
    for cell in cells { Self.append(cell.stamp, to: &bytes) }
    return bytes + KeptCells.encode(cells.map { ($0.column, $0.value) })
  }

  init(bytes: [UInt8]) throws {
    var index = 0
    guard let existence = RowState.Existence(rawValue: try Self.byte(bytes, &index)) else {
      throw ForeignRows.definition.damaged()
    }
    self.existence = existence
    existenceStamp = try Self.stamp(bytes, &index)
    erasureStamp = try Self.stamp(bytes, &index)
    if try Self.byte(bytes, &index) == 1 {
      keyHint = Int64(bitPattern: try Self.varint(bytes, &index))
    }
    if try Self.byte(bytes, &index) == 1 {
      let count = try Self.varint(bytes, &index)
      guard count <= UInt64(bytes.count - index) else { throw ForeignRows.definition.damaged() }
      destination = RowIdentity(bytes: Array(bytes[index..<(index + Int(count))]))
      index += Int(count)
    }
    let count = try Self.varint(bytes, &index)
    guard count <= UInt64(bytes.count) else { throw ForeignRows.definition.damaged() }
    var stamps: [LocalStamp] = []
    for _ in 0..<count { stamps.append(try Self.stamp(bytes, &index)) }
    let values = try KeptCells.decode(Array(bytes[index...]))
    guard values.count == stamps.count else { throw ForeignRows.definition.damaged() }
    cells = zip(values, stamps).map {
      Cell(column: $0.column, value: $0.value, stamp: $1)
    }
  }

  private static func append(_ stamp: LocalStamp, to bytes: inout [UInt8]) {
    append(stamp.time, to: &bytes)
    append(UInt64(stamp.client), to: &bytes)
  }

  private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
    var value = value
    while value >= 128 {
      bytes.append(UInt8(truncatingIfNeeded: value) | 128)
      value >>= 7
    }
    bytes.append(UInt8(value))
  }

  private static func byte(_ bytes: [UInt8], _ index: inout Int) throws -> UInt8 {
    guard index < bytes.count else { throw ForeignRows.definition.damaged() }
    defer { index += 1 }
    return bytes[index]
  }

  private static func varint(_ bytes: [UInt8], _ index: inout Int) throws -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while shift < 64 {
      let byte = try byte(bytes, &index)
      value |= UInt64(byte & 127) << shift
      if byte < 128 { return value }
      shift += 7
    }
    throw ForeignRows.definition.damaged()
  }

  private static func stamp(_ bytes: [UInt8], _ index: inout Int) throws -> LocalStamp {
    let time = try varint(bytes, &index)
    return LocalStamp(time: time, client: Int32(truncatingIfNeeded: try varint(bytes, &index)))
  }
}
