extension Duration {
  /// The whole milliseconds of the duration, clamped to the range of `Int64`.
  package var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1000)
    guard !overflows else { return seconds < 0 ? .min : .max }
    let (sum, isOver) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
    return isOver ? (seconds < 0 ? .min : .max) : sum
  }
}
