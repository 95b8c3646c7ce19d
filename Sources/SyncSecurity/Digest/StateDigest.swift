import SyncModel

/// A digest of the state of a document that follows every change at little cost: the sum, modulo
/// 2¹²⁸, of a keyed hash for each row that has a stamp.
///
/// Devices with the same vector, schema and generation have the same digest, in whatever order
/// their rows came. It finds accidents, not members that lie, and it covers names, identities and
/// stamps, not values.
package struct StateDigest: Hashable, Sendable {
  /// A row as the digest covers it.
  package struct Row: Hashable, Sendable {
    /// The name of the table.
    package var table: String
    /// The encoded identity.
    package var identity: [UInt8]
    /// The encoded stamps of the row and its cells.
    package var stamps: [UInt8]

    /// Creates a row.
    package init(table: String, identity: [UInt8], stamps: [UInt8]) {
      self.table = table
      self.identity = identity
      self.stamps = stamps
    }

    fileprivate var bytes: [UInt8] {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(12 + table.utf8.count + identity.count + stamps.count)
      bytes.append(counted: Array(table.utf8))
      bytes.append(counted: identity)
      bytes.append(counted: stamps)
      return bytes
    }
  }

  private let hash: SipHash
  /// The sum of the hashes of all rows that were added.
  package private(set) var sum: Bits128

  /// Begins with a sum that was stored, or with that of no rows.
  package init(generation: IntegrityKey, sum: Bits128 = Bits128(high: 0, low: 0)) {
    let key = Label.stateDigest.hash(generation.bits.bytes)
    hash = key.withUnsafeBytes { buffer in
      SipHash(
        key: (
          UInt64(littleEndian: buffer.loadUnaligned(as: UInt64.self)),
          UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        ))
    }
    self.sum = sum
  }

  /// Adds a row that has come, or the new state of one that has changed.
  package mutating func add(_ row: Row) {
    let value = hash.hash(row.bytes)
    let (low, carries) = sum.low.addingReportingOverflow(value.low)
    sum = Bits128(high: sum.high &+ value.high &+ (carries ? 1 : 0), low: low)
  }

  /// Removes a row that has gone, or the former state of one that has changed.
  package mutating func remove(_ row: Row) {
    let value = hash.hash(row.bytes)
    let (low, borrows) = sum.low.subtractingReportingOverflow(value.low)
    sum = Bits128(high: sum.high &- value.high &- (borrows ? 1 : 0), low: low)
  }
}
