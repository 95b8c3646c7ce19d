import SyncModel

extension Value {
  /// Returns whether the values are equal, or this is a real that an integer column stores as the
  /// other number.
  func isSameNumber(as other: Value) -> Bool {
    if case .real(let real) = self, case .integer(let integer) = other {
      return Int64(exactly: real) == integer
    }
    return self == other
  }
}

extension FleetTable {
  /// Returns the value of a reference to a row; `nil` unless the key is one column that is the same
  /// on all devices.
  func nameByReference(of row: RowIdentity) -> Value? {
    guard key.count == 1, !hasSurrogateKey else { return nil }
    return IdentityEncoding.values(of: row, count: 1)?.first
  }
}
