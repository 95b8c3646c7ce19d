import SyncModel
import Testing

@testable import DocumentSyncTesting

/// What the simulator draws, and how often.
@Suite struct FleetDrawingTests {
  private func plans(_ seeds: ClosedRange<UInt64>) throws -> [FleetPlan] {
    try seeds.map { seed in
      var plans = RandomPlan(seed: seed, options: Fleet.Options())
      return try plans.draw()
    }
  }

  /// 200 rows of one device and 60 change sets are reached in a tenth of the histories. Histories that
  /// are not long are not carried out, and count as if they did not reach it.
  @Test func aTenthOfTheHistoriesHasManyRowsAndChangeSets() async throws {
    let plans = try plans(21...50)
    var reached = 0
    for plan in plans where plan.isLong {
      let outcome = try await FleetRun.carryOut(plan)
      #expect(outcome.failure == nil)
      if outcome.size.hasManyRows, outcome.size.hasManyChangeSets { reached += 1 }
    }
    #expect(10 * reached >= plans.count, "\(reached) of \(plans.count)")
  }

  /// Only managers join change sets to segments, upload whole stores and clear away, and only where
  /// thresholds are small do they do that in so few steps.
  @Test func aTenthOfTheHistoriesHasManagersWithSmallThresholds() throws {
    let plans = try plans(1...1_000)
    let small = plans.filter { $0.usesManagers && $0.circumstances.borders != nil }
    #expect(10 * small.count >= plans.count, "\(small.count) of \(plans.count)")
    #expect(10 * plans.filter(\.isLong).count >= plans.count)
  }

  /// Columns come to tables whose rows are one register, and go from them.
  @Test(arguments: [TableMergeType.wholeRow, .keepBoth])
  func columnsOfWholeRowsAreAddedAndDropped(type: TableMergeType) throws {
    let migrations = try plans(1...1_000).flatMap { plan in
      plan.migrations.filter { plan.schema.table($0.table)?.mergeType == type }
    }
    #expect(migrations.count { $0.column != nil && !$0.isRemoval } >= 20)
    #expect(migrations.count(where: \.isRemoval) >= 3)
  }
}
