extension Int {
  /// Returns the sum of two counts, at most the greatest number. Damaged bookkeeping may have any count; a
  /// negative one counts as none.
  func clampedSum(_ other: Int) -> Int {
    let (sum, isOver) = Swift.max(self, 0).addingReportingOverflow(Swift.max(other, 0))
    return isOver ? .max : sum
  }
}
