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
  /// The codes of the actions that the remedy names.
  var actions: [String]
  var detail: String?

  init(_ finding: VerifyReport.Finding, at place: CommandPlace) {
    kind = finding.kind.rawValue
    severity = finding.severity.rawValue
    path = finding.path
    table = finding.table
    message = finding.message
    remedy = finding.remedy.commandText(at: place)
    actions = finding.remedy.actions.map(\.code)
    detail = finding.detail
  }
}
