/// The result of verifying: what was checked, and the findings.
public struct VerifyReport: Hashable, Sendable {
  /// The findings, the gravest first, then in order of path or table.
  public var findings: [Finding] = []
  /// The number of files of a shared directory that were read.
  public var fileCount = 0
  /// The total size of these files, in bytes.
  public var byteCount = 0
  /// The number of rows of a store that were compared with the bookkeeping.
  public var rowCount = 0
  /// One sentence for each part that was not checked, with the reason.
  public var leftOut: [String] = []

  /// Creates an empty report.
  package init() {}

  /// The gravest severity; `nil` if nothing was found.
  public var severity: Finding.Severity? { findings.map(\.severity).max() }

  /// Adds the report on another part.
  public mutating func add(_ other: VerifyReport) {
    findings += other.findings
    fileCount += other.fileCount
    byteCount += other.byteCount
    rowCount += other.rowCount
    leftOut += other.leftOut
  }

  /// Sorts the findings as ``findings`` describes.
  public mutating func sort() {
    findings.sort { left, right in
      if left.severity != right.severity { return left.severity > right.severity }
      let places = [left, right].map { $0.path.map { SQLName($0) } ?? $0.table ?? "" }
      if places[0] != places[1] { return places[0] < places[1] }
      return (left.kind.rawValue, left.message) < (right.kind.rawValue, right.message)
    }
  }
}
