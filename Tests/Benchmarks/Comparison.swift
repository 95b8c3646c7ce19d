/// One figure set against another, with the ratio that it should keep to.
struct Comparison {
  /// The kind of figure.
  enum Aspect: String, CaseIterable, Codable {
    case write
    case export
    case apply
    case payload
    case file

    /// The heading of its part of the report.
    var title: String {
      switch self {
      case .write: "Local writes, CPU"
      case .export: "Export, CPU"
      case .apply: "Apply on the second device, CPU"
      case .payload: "Payload, bytes"
      case .file: "File, bytes"
      }
    }
  }

  /// The sum of some quantities of one subject.
  struct Term {
    var subject: SubjectName
    var quantities: [Quantity]

    init(_ subject: SubjectName, _ quantities: Quantity...) {
      self.subject = subject
      self.quantities = quantities
    }

    /// The sum for each round; empty if anything was not measured.
    func values(in workload: Workload, of samples: Samples) -> [Double] {
      let columns = quantities.map { samples.values($0, of: subject, in: workload) }
      guard let length = columns.map(\.count).min() else { return [] }
      return (0..<length).map { round in columns.reduce(0) { $0 + $1[round] } }
    }
  }

  var aspect: Aspect
  var title: String
  var numerator: Term
  var denominator: Term
  /// The greatest ratio that is wanted, for the workloads that have one.
  var targets: [Workload: Double] = [:]

  /// The ratio in each round.
  func ratios(in workload: Workload, of samples: Samples) -> [Double] {
    zip(
      numerator.values(in: workload, of: samples), denominator.values(in: workload, of: samples)
    ).compactMap { $1 > 0 ? $0 / $1 : nil }
  }

  /// Everything that the report compares.
  static let all: [Comparison] = [
    Comparison(
      aspect: .write, title: "DocumentSync / plain", numerator: Term(.documentSync, .write),
      denominator: Term(.plain, .write),
      targets: [.insert: 1.35, .updateAll: 1.25, .delete: 1.15, .updateSingly: 1.35]),
    Comparison(
      aspect: .write, title: "session / plain", numerator: Term(.session, .write),
      denominator: Term(.plain, .write)),
    Comparison(
      aspect: .export, title: "DocumentSync / session changeset",
      numerator: Term(.documentSync, .extract), denominator: Term(.session, .extract),
      targets: allWorkloads(1)),
    Comparison(
      aspect: .export, title: "DocumentSync / session patchset",
      numerator: Term(.documentSync, .extract), denominator: Term(.session, .extractPatchset),
      targets: allWorkloads(1)),
    Comparison(
      aspect: .export, title: "DocumentSync / session patchset + zlib 6",
      numerator: Term(.documentSync, .extract),
      denominator: Term(.session, .extractPatchset, .compress), targets: allWorkloads(1)),
    Comparison(
      aspect: .apply, title: "DocumentSync / session changeset",
      numerator: Term(.documentSync, .apply), denominator: Term(.session, .apply),
      targets: [.insert: 1, .updateAll: 1]),
    Comparison(
      aspect: .apply, title: "DocumentSync / session changeset + inflate",
      numerator: Term(.documentSync, .apply), denominator: Term(.session, .apply, .inflate)),
    Comparison(
      aspect: .apply, title: "DocumentSync / plain", numerator: Term(.documentSync, .apply),
      denominator: Term(.plain, .apply)),
    Comparison(
      aspect: .apply, title: "session changeset / plain", numerator: Term(.session, .apply),
      denominator: Term(.plain, .apply)),
    Comparison(
      aspect: .payload, title: "DocumentSync / session patchset, zlib 6",
      numerator: Term(.documentSync, .payload), denominator: Term(.session, .payload),
      targets: [.insert: 0.95, .updateAll: 0.85, .delete: 0.80]),
    Comparison(
      aspect: .payload, title: "DocumentSync / row dump, zlib 6",
      numerator: Term(.documentSync, .payload), denominator: Term(.plain, .payload)),
    Comparison(
      aspect: .payload, title: "session patchset / row dump, zlib 6",
      numerator: Term(.session, .payload), denominator: Term(.plain, .payload)),
    Comparison(
      aspect: .file, title: "DocumentSync / plain, before the export",
      numerator: Term(.documentSync, .fileBeforeExport),
      denominator: Term(.plain, .fileBeforeExport)),
    Comparison(
      aspect: .file, title: "DocumentSync / plain, first device",
      numerator: Term(.documentSync, .file), denominator: Term(.plain, .file)),
    Comparison(
      aspect: .file, title: "DocumentSync / plain, second device",
      numerator: Term(.documentSync, .secondFile), denominator: Term(.plain, .secondFile)),
    Comparison(
      aspect: .file, title: "bookkeeping / file, first device",
      numerator: Term(.documentSync, .bookkeeping), denominator: Term(.documentSync, .file)),
    Comparison(
      aspect: .file, title: "bookkeeping / file, second device",
      numerator: Term(.documentSync, .secondBookkeeping),
      denominator: Term(.documentSync, .secondFile)),
  ]

  private static func allWorkloads(_ target: Double) -> [Workload: Double] {
    Dictionary(uniqueKeysWithValues: Workload.allCases.map { ($0, target) })
  }
}
