/// The result of verifying: the extent of the check, and its findings.
public struct VerifyReport: Hashable, Sendable {
  /// The findings, the gravest first, then in order of path or table.
  public var findings: [Finding] = []
  /// How many files of a shared directory were read.
  public var fileCount = 0
  /// How many bytes they have.
  public var byteCount = 0
  /// How many rows of a store were compared with the bookkeeping.
  public var rowCount = 0
  /// The parts that were not checked, and why, a sentence each.
  public var leftOut: [String] = []

  /// A report of nothing.
  package init() {}

  /// The gravest severity; `nil` if nothing was found.
  public var severity: Finding.Severity? { findings.map(\.severity).max() }

  /// Adds the results of another part of the work.
  public mutating func add(_ other: VerifyReport) {
    findings += other.findings
    fileCount += other.fileCount
    byteCount += other.byteCount
    rowCount += other.rowCount
    leftOut += other.leftOut
  }

  /// Puts the findings in order.
  public mutating func sort() {
    findings.sort { left, right in
      if left.severity != right.severity { return left.severity > right.severity }
      let places = [left, right].map { $0.path.map { SQLName($0) } ?? $0.table ?? "" }
      if places[0] != places[1] { return places[0] < places[1] }
      return (left.kind.rawValue, left.message) < (right.kind.rawValue, right.message)
    }
  }
}
