/// Told how much of a long call is done, and how much there is, in the units
/// that the call names. Neither goes back.
public typealias WorkProgress = (_ done: Int, _ total: Int) -> Void

/// Counts the steps of a long call, and tells whoever wants to know.
final class WorkCount {
  private var done = 0
  private var total = 0
  private let report: WorkProgress

  init(_ report: @escaping WorkProgress) { self.report = report }

  /// There is so much to do.
  func begin(_ total: Int) {
    self.total = total
    report(done, total)
  }

  /// So much of it was done.
  func advance(by count: Int = 1) { advance(to: done + count) }

  /// So much of it is done by now, if it was not before.
  func advance(to count: Int) {
    let now = min(count, total)
    guard now > done else { return }
    done = now
    report(done, total)
  }

  /// All of it is done.
  func finish() { advance(to: total) }
}
