import SyncModel

/// A finding of `verify`, as printed.
struct FindingJSON: Encodable, Sendable {
  var kind: String
  /// `error`, `waiting` or `note`.
  var severity: String
  var path: String?
  var table: SQLName?
  var message: String
  var remedy: String
  var detail: String?

  init(_ finding: VerifyReport.Finding) {
    kind = finding.kind.rawValue
    severity = finding.severity.rawValue
    path = finding.path
    table = finding.table
    message = finding.message
    remedy = finding.remedy
    detail = finding.detail
  }
}
