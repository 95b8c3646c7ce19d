import DocumentSync

/// The files that a vacuum removed or left, as printed.
struct VacuumJSON: Encodable, Sendable {
  /// Files of one kind, by one client.
  struct Files: Encodable, Sendable {
    var kind: String
    var client: String
    var first: UInt64
    var last: UInt64
    var count: Int
    var message: String
    /// The member that still needs the files.
    var member: String?

    init(_ files: VacuumReport.Files) {
      kind = files.kind.rawValue
      client = files.client.description
      first = files.first
      last = files.last
      count = files.count
      message = files.reason
      member = files.member?.description
    }
  }

  var removed: [Files]
  var kept: [Files]
  var madeSegments: Int
  var verifiedSegments: Int
  var uploadedWholeStore: Bool

  init(_ report: VacuumReport) {
    removed = report.removed.map(Files.init)
    kept = report.kept.map(Files.init)
    madeSegments = report.madeSegments
    verifiedSegments = report.verifiedSegments
    uploadedWholeStore = report.uploadedWholeStore
  }
}
