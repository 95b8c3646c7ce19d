/// Carries out what each seed stands for, several at a time.
struct SeedRuns {
  let seeds: ClosedRange<UInt64>
  let jobs: Int

  /// Calls `simulate` with the seeds in order, and `take` with each report as
  /// it comes; begins no more once `take` says so.
  func run<Report: Sendable>(
    _ simulate: @escaping @Sendable (UInt64) async throws -> Report,
    take: (Report) -> Bool
  ) async throws {
    var next = seeds.lowerBound
    var isDone = false
    try await withThrowingTaskGroup(of: Report.self) { group in
      func begin() {
        guard !isDone else { return }
        let seed = next
        isDone = seed == seeds.upperBound
        if !isDone { next += 1 }
        group.addTask { try await simulate(seed) }
      }
      for _ in 0..<jobs { begin() }
      while let report = try await group.next() {
        if !take(report) { isDone = true }
        begin()
      }
    }
  }
}
