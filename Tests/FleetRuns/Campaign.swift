import DocumentSyncTesting
import Foundation

/// Many histories, several at a time.
struct Campaign {
  let seeds: ClosedRange<UInt64>
  let options: Fleet.Options
  let jobs: Int
  let maximumFailures: Int
  let deadline: Date
  let isQuiet: Bool

  private var runs = 0
  private var accepted = 0
  private var refused = 0
  private var syncs = 0
  private var hiddenRows = 0
  private var sizes: [Fleet.Size] = []
  private var failed: [Fleet.Report] = []
  private let start = Date()
  private var lastProgress = Date()

  init(
    seeds: ClosedRange<UInt64>, options: Fleet.Options, jobs: Int, maximumFailures: Int,
    deadline: Date, isQuiet: Bool
  ) {
    self.seeds = seeds
    self.options = options
    self.jobs = jobs
    self.maximumFailures = maximumFailures
    self.deadline = deadline
    self.isQuiet = isQuiet
  }

  /// Runs all, and gives those that failed, in order of seed.
  mutating func run() async throws -> [Fleet.Report] {
    try await SeedRuns(seeds: seeds, jobs: jobs).run { [options] seed in
      try await Fleet.run(seed: seed, options: options)
    } take: { report in
      take(report)
      return failed.count < maximumFailures && Date() < deadline
    }
    return failed.sorted { $0.seed < $1.seed }
  }

  private mutating func take(_ report: Fleet.Report) {
    runs += 1
    accepted += report.acceptedStatements
    refused += report.refusedStatements
    syncs += report.syncs
    hiddenRows += report.hiddenRows
    sizes.append(report.size)
    if let failure = report.failure {
      failed.append(report)
      let line = "\rSeed \(report.seed) fails: \(failure.kind), \(failure.details.prefix(60))"
      FileHandle.standardError.write(
        Data((line.replacingOccurrences(of: "\n", with: " ") + "\n").utf8))
    }
    guard !isQuiet, Date().timeIntervalSince(lastProgress) > 1 else { return }
    lastProgress = Date()
    let line = "\r\(runs) of \(seeds.count) histories, \(failed.count) failed, \(rate) a second  "
    FileHandle.standardError.write(Data(line.utf8))
  }

  private var rate: String {
    String(format: "%.1f", Double(runs) / max(Date().timeIntervalSince(start), 0.001))
  }

  /// The sizes that histories reached, in one line.
  var sizeSummary: String {
    func share(_ isReached: (Fleet.Size) -> Bool) -> String {
      let reached = sizes.count(where: isReached)
      return String(format: "%.1f %%", 100 * Double(reached) / Double(max(sizes.count, 1)))
    }
    return "200 rows in \(share(\.hasManyRows)) of the histories (in one table "
      + "\(share { $0.rowsInOneTable >= 200 })), 60 change sets in "
      + "\(share(\.hasManyChangeSets)), both in "
      + "\(share { $0.hasManyRows && $0.hasManyChangeSets }); segments in "
      + "\(share { $0.segments > 0 }), removed change sets in "
      + "\(share { $0.removedChangeSets > 0 }); at most "
      + "\(sizes.map(\.rows).max() ?? 0) rows and \(sizes.map(\.changeSets).max() ?? 0) change sets; "
      + "edits too large to be sent in \(share { $0.heldEdits > 0 }), to the end in "
      + "\(share { $0.lastingHeldEdits > 0 }); change sets undone in \(share { $0.undoneRows > 0 })"
  }

  /// What was simulated, in one line.
  var summary: String {
    let share = accepted + refused == 0 ? 0 : 100 * accepted / (accepted + refused)
    return "\(runs) histories (\(rate) a second): \(accepted) statements accepted (\(share) %), "
      + "\(syncs) syncs, \(hiddenRows) rows parked in the end, \(failed.count) failed"
  }
}
