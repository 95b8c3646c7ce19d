import SyncModel

extension HybridTime {
  /// Creates the time of a Julian day as SQLite gives it.
  init(julianDay: Double) {
    let milliseconds = (julianDay - 2_440_587.5) * 86_400_000
    self.init(
      milliseconds: milliseconds.isFinite
        ? Int64(min(max(milliseconds.rounded(), 0), Double(Self.greatestMilliseconds))) : 0)
  }

  /// Returns the Julian day, as SQLite gives it, of a time in milliseconds since 1970.
  static func julianDay(milliseconds: Int64) -> Double {
    Double(milliseconds) / 86_400_000 + 2_440_587.5
  }
}
