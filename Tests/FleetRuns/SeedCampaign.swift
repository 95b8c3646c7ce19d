import DocumentSyncTesting
import Foundation

/// The outcome of what one seed stands for.
protocol SeedReport: Sendable {
  var seed: UInt64 { get }
  /// The violation; `nil` if there was none.
  var failure: FleetFailure? { get }
}

extension Life.Report: SeedReport {}
extension Joining.Report: SeedReport {}

/// Many simulations, several at a time.
struct SeedCampaign<Report: SeedReport> {
  let seeds: ClosedRange<UInt64>
  let jobs: Int
  let maximumFailures: Int
  let deadline: Date

  private(set) var reports: [Report] = []
  private let start = Date()

  init(seeds: ClosedRange<UInt64>, jobs: Int, maximumFailures: Int, deadline: Date) {
    self.seeds = seeds
    self.jobs = jobs
    self.maximumFailures = maximumFailures
    self.deadline = deadline
  }

  /// The simulations that failed, in order of seed.
  var failed: [Report] { reports.filter { $0.failure != nil }.sorted { $0.seed < $1.seed } }

  /// Simulates what each seed stands for.
  mutating func run(_ simulate: @escaping @Sendable (UInt64) async throws -> Report) async throws {
    var failures = 0
    try await SeedRuns(seeds: seeds, jobs: jobs).run(simulate) { report in
      reports.append(report)
      if let failure = report.failure {
        failures += 1
        tell(failure, of: report.seed)
      }
      return failures < maximumFailures && Date() < deadline
    }
  }

  private func tell(_ failure: FleetFailure, of seed: UInt64) {
    let line = "Seed \(seed) fails: \(failure.kind), \(failure.details.prefix(100))"
    FileHandle.standardError.write(
      Data((line.replacingOccurrences(of: "\n", with: " ") + "\n").utf8))
  }

  /// The number of simulations and their rate, such as “60 lives (1.2 a second)”.
  func count(_ things: String) -> String {
    let rate = Double(reports.count) / max(Date().timeIntervalSince(start), 0.001)
    return "\(reports.count) \(things) (\(String(format: "%.1f", rate)) a second)"
  }

  /// The sum of a number of all reports.
  func sum(_ number: KeyPath<Report, Int>) -> Int { reports.reduce(0) { $0 + $1[keyPath: number] } }
}
