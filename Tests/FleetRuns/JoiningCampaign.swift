import DocumentSyncTesting
import Foundation

/// Many databases that join documents, several at a time.
struct JoiningCampaign {
  let seeds: ClosedRange<UInt64>
  let features: FleetFeatures
  let jobs: Int
  let maximumFailures: Int
  let deadline: Date

  private var runs = 0
  private var rows = 0
  private var matchedRows = 0
  private var refusedRows = 0
  private var references = 0
  private var failed: [Joining.Report] = []
  private let start = Date()

  init(
    seeds: ClosedRange<UInt64>, features: FleetFeatures, jobs: Int,
    maximumFailures: Int, deadline: Date
  ) {
    self.seeds = seeds
    self.features = features
    self.jobs = jobs
    self.maximumFailures = maximumFailures
    self.deadline = deadline
  }

  /// Runs all, and gives those that failed, in order of seed.
  mutating func run() async throws -> [Joining.Report] {
    try await SeedRuns(seeds: seeds, jobs: jobs).run { [features] seed in
      try await Joining.run(seed: seed, features: features)
    } take: { report in
      take(report)
      return failed.count < maximumFailures && Date() < deadline
    }
    return failed.sorted { $0.seed < $1.seed }
  }

  private mutating func take(_ report: Joining.Report) {
    runs += 1
    rows += report.rows
    matchedRows += report.matchedRows
    refusedRows += report.refusedRows
    references += report.references
    guard let failure = report.failure else { return }
    failed.append(report)
    let line = "Seed \(report.seed) fails: \(failure.kind), \(failure.details.prefix(100))"
    FileHandle.standardError.write(
      Data((line.replacingOccurrences(of: "\n", with: " ") + "\n").utf8))
  }

  /// What was simulated, in one line.
  var summary: String {
    let rate = Double(runs) / max(Date().timeIntervalSince(start), 0.001)
    return "\(runs) databases joined (\(String(format: "%.1f", rate)) a second): \(rows) rows, "
      + "\(matchedRows) became other rows, \(refusedRows) refused, \(references) references "
      + "followed, \(failed.count) failed"
  }
}
