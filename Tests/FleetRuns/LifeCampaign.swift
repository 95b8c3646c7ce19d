import DocumentSyncTesting
import Foundation

/// Many lives of documents, several at a time.
struct LifeCampaign {
  let seeds: ClosedRange<UInt64>
  let features: LifeFeatures
  let steps: Int
  let jobs: Int
  let maximumFailures: Int
  let deadline: Date

  private var runs = 0
  private var edits = 0
  private var syncs = 0
  private var passedOver = 0
  private var failed: [Life.Report] = []
  private let start = Date()

  init(
    seeds: ClosedRange<UInt64>, features: LifeFeatures, steps: Int, jobs: Int,
    maximumFailures: Int, deadline: Date
  ) {
    self.seeds = seeds
    self.features = features
    self.steps = steps
    self.jobs = jobs
    self.maximumFailures = maximumFailures
    self.deadline = deadline
  }

  /// Runs all, and gives those that failed, in order of seed.
  mutating func run() async throws -> [Life.Report] {
    try await SeedRuns(seeds: seeds, jobs: jobs).run { [features, steps] seed in
      try await Life.run(seed: seed, features: features, steps: steps)
    } take: { report in
      take(report)
      return failed.count < maximumFailures && Date() < deadline
    }
    return failed.sorted { $0.seed < $1.seed }
  }

  private mutating func take(_ report: Life.Report) {
    runs += 1
    edits += report.edits
    syncs += report.syncs
    passedOver += report.passedOver
    guard let failure = report.failure else { return }
    failed.append(report)
    let line = "Seed \(report.seed) fails: \(failure.kind), \(failure.details.prefix(100))"
    FileHandle.standardError.write(
      Data((line.replacingOccurrences(of: "\n", with: " ") + "\n").utf8))
  }

  /// What was simulated, in one line.
  var summary: String {
    let rate = Double(runs) / max(Date().timeIntervalSince(start), 0.001)
    return "\(runs) lives (\(String(format: "%.1f", rate)) a second): \(edits) edits, "
      + "\(syncs) syncs, \(passedOver) steps passed over, \(failed.count) failed"
  }
}
