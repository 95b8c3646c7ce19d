import DocumentSyncTesting
import Testing

/// A sample of what `swift run fleet` does at length.
@Suite struct FleetTests {
  @Test(arguments: UInt64(1)...16)
  func everyInvariantHolds(seed: UInt64) async throws {
    let report = try await Fleet.run(seed: seed)
    #expect(report.failure == nil)
  }

  @Test(arguments: [true, false])
  func aSeedGivesTheSameHistoryEachTime(usesManagers: Bool) async throws {
    var options = Fleet.Options()
    options.usesManagers = usesManagers
    let first = try await Fleet.run(seed: 7, options: options)
    let second = try await Fleet.run(seed: 7, options: options)
    #expect(first.result == second.result)
    #expect(first.acceptedStatements == second.acceptedStatements)
    #expect(first.acceptedStatements > 0)
    #expect(!first.result.isEmpty)
  }

  @Test func mostStatementsAreAccepted() async throws {
    var accepted = 0
    var refused = 0
    for seed in UInt64(100)..<108 {
      let report = try await Fleet.run(seed: seed)
      accepted += report.acceptedStatements
      refused += report.refusedStatements
    }
    #expect(accepted > refused)
  }
}
