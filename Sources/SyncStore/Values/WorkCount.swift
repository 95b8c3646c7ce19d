/// A function that receives how much of a long call is done, and how much there is, in the units
/// that the call names. Neither number decreases.
package typealias WorkProgress = (_ done: Int, _ total: Int) -> Void

/// A counter of the steps of a long call, which reports them.
final class WorkCount {
  private var done = 0
  private var total = 0
  private let report: WorkProgress

  init(_ report: @escaping WorkProgress) { self.report = report }

  /// Sets the amount of work.
  func begin(_ total: Int) {
    self.total = total
    report(done, total)
  }

  /// Adds to the work that is done.
  func advance(by count: Int = 1) { advance(to: done + count) }

  /// Sets the work that is done, unless as much was done before.
  func advance(to count: Int) {
    let now = min(count, total)
    guard now > done else { return }
    done = now
    report(done, total)
  }

  /// Notes that all work is done.
  func finish() { advance(to: total) }
}
