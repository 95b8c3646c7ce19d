import Foundation

extension Date {
  /// Creates the time that many milliseconds after 1970.
  package init(milliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
  }

  /// Milliseconds since 1970, rounded down.
  package var milliseconds: Int64 { Int64((timeIntervalSince1970 * 1000).rounded(.down)) }
}
