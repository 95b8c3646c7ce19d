import SyncModel

extension HybridTime {
  /// The Julian day, as SQLite gives it, of a time in milliseconds since 1970.
  static func julianDay(milliseconds: Int64) -> Double {
    Double(milliseconds) / 86_400_000 + 2_440_587.5
  }
}
