import DocumentSync
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

  /// Edits are undone at the end of some histories with managers.
  @Test func changeSetsAreUndone() async throws {
    let drawn = try plans(1...300).filter(\.undoes)
    #expect(drawn.count > 10 && drawn.allSatisfy(\.usesManagers))
    var undone = 0
    for plan in drawn.filter({ !$0.isLong }).prefix(6) {
      let outcome = try await FleetRun.carryOut(plan)
      #expect(outcome.failure == nil)
      undone += outcome.size.undoneRows
    }
    #expect(undone > 0)
  }

  /// Only managers join change sets to segments, upload whole stores and clear away, and only where
  /// thresholds are small do they do that in so few steps.
  @Test func aTenthOfTheHistoriesHasManagersWithSmallThresholds() throws {
    let plans = try plans(1...1_000)
    let small = plans.filter { $0.usesManagers && $0.circumstances.borders != nil }
    #expect(10 * small.count >= plans.count, "\(small.count) of \(plans.count)")
    #expect(10 * plans.filter(\.isLong).count >= plans.count)
  }

  /// Names that Unicode holds equal are together in one schema.
  @Test func namesAreHostile() throws {
    let hostile = try plans(1...1_000).map(\.schema).filter(\.hasHostileNames)
    #expect(hostile.count >= 100)
    let names = hostile.map { schema in
      schema.tables.map(\.name.text) + schema.tables.flatMap { $0.columns.map(\.name.text) }
    }
    let confusable = names.filter { names in
      Set(names).count < Set(names.map { Array($0.utf8) }).count
    }
    #expect(confusable.count >= 10)
    for mark in ["\"", "'", "]", "`", "\n", "%", "(", ",", ".", " "] {
      #expect(names.contains { $0.contains { $0.utf8.contains(mark.utf8.first ?? 0) } }, "\(mark)")
    }
  }

  /// Processes end while they make a half of a synchronization.
  @Test func processesEndInHalves() throws {
    let steps = try plans(1...300).flatMap(\.steps)
    for wanted in [SynchronizeOperation.Extent.fetching, .sending] {
      let ended = steps.filter { step in
        if case .kill(_, _, _, _, let extent) = step { extent == wanted } else { false }
      }
      #expect(ended.count >= 20)
    }
  }

  /// Tables without a primary key are created, and some get a key.
  @Test func tablesWithoutAKeyAreDrawn() throws {
    let plans = try plans(1...300).filter(\.hasLooseTables)
    #expect(plans.count >= 20)
    #expect(plans.count { !$0.schema.looseTables.isEmpty } >= 10)
    #expect(plans.count { $0.migrations.contains(where: \.isNewTable) } >= 10)
  }

  /// References to integer keys have columns of texts and of any type, and numbers in several forms.
  @Test func referencesHaveOtherAffinities() throws {
    func columns(_ schema: FleetSchema) -> [(type: FleetColumn.DataType, forms: [String])] {
      schema.tables.flatMap { table in
        table.references.compactMap { reference in
          let column = table.columns[reference.columns[0]]
          guard let key = schema.table(reference.parent)?.integerKey,
            reference.parentColumns == [key], column.type != .integer
          else { return nil }
          return (column.type, column.forms(of: "3"))
        }
      }
    }
    let drawn = try plans(1...300).map { columns($0.schema) }.filter { !$0.isEmpty }
    #expect(drawn.count >= 12)
    #expect(Set(drawn.flatMap { $0 }.map(\.type)) == [.text, .any])
    #expect(drawn.flatMap { $0 }.allSatisfy { Set($0.forms).count > 3 })
    var options = Fleet.Options()
    options.features = .former
    for seed in UInt64(1)...300 {
      var plans = RandomPlan(seed: seed, options: options)
      #expect(try columns(plans.draw().schema).isEmpty)
    }
  }

  /// References to unique columns that are references, also in keys, and values that lead there.
  @Test func referencesLeadThroughOthers() throws {
    func chained(_ schema: FleetSchema) -> FleetTable? {
      schema.tables.first { table in
        table.references.contains { reference in
          schema.table(reference.parent)?.references.contains { next in
            reference.parentColumns.contains { next.columns.contains($0) }
              && schema.table(reference.parent)?.key.contains(next.columns[0]) == false
          } ?? false
        }
      }
    }
    let drawn = try plans(1...300).compactMap { chained($0.schema) }
    #expect(drawn.count >= 20)
    #expect(drawn.contains(where: \.hasSurrogateKey) && !drawn.allSatisfy(\.hasSurrogateKey))
    var options = Fleet.Options()
    options.features = .former
    for seed in UInt64(1)...300 {
      var plans = RandomPlan(seed: seed, options: options)
      #expect(try chained(plans.draw().schema) == nil)
    }
  }

  /// Excluded tables refer to tables with all kinds of keys, and to one another, and are edited.
  @Test func excludedTablesThatReferAreDrawn() throws {
    let drawn = try plans(1...300).filter { !$0.schema.markTables.isEmpty }
    #expect(drawn.count >= 20)
    let parents = drawn.compactMap { $0.schema.table($0.schema.markTables[0].parent) }
    #expect(parents.contains(where: \.hasSurrogateKey) && !parents.allSatisfy(\.hasSurrogateKey))
    #expect(
      drawn.contains { plan in
        plan.schema.markTables.count == 2
          && plan.schema.table(plan.schema.markTables[1].parent) == nil
      })
    let edited = drawn.filter { plan in
      plan.steps.contains { step in
        guard case .edit(_, let edit) = step else { return false }
        return edit.statements.contains {
          $0.hasPrefix("INSERT OR IGNORE INTO") && $0.contains("(id, p)")
        }
      }
    }
    #expect(edited.count >= 15)
  }

  /// Histories that are to stay as they were have nothing of it.
  @Test func formerHistoriesStayAsTheyWere() throws {
    var options = Fleet.Options()
    options.features = .former
    for seed in UInt64(1)...300 {
      var plans = RandomPlan(seed: seed, options: options)
      let plan = try plans.draw()
      #expect(!plan.schema.hasHostileNames && !plan.hasLooseTables && !plan.hasHalves)
      #expect(plan.schema.markTables.isEmpty)
    }
  }

  /// Devices decide by functions of the library, and not in histories that are to stay as they were.
  @Test func functionsOfTheLibraryAreDrawn() throws {
    func count(_ policies: [[Int: SyncPolicies]]) -> Int {
      policies.count { drawn in
        drawn.values.contains { policies in
          ([policies.document] + policies.tables.values).contains { $0.shippedFunction != nil }
        }
      }
    }
    var options = Fleet.Options()
    options.features = .former
    let former = try (UInt64(1)...300).map { seed in
      var plans = RandomPlan(seed: seed, options: options)
      return try plans.draw().policies
    }
    #expect(try count(plans(1...300).map(\.policies)) >= 20)
    #expect(count(former) == 0)
    options = Fleet.Options()
    options.always = .functions
    let always = try (UInt64(1)...50).map { seed in
      var plans = RandomPlan(seed: seed, options: options)
      return try plans.draw().policies
    }
    #expect(count(always) == 50)
    func lives(_ features: LifeFeatures) -> [[Int: SyncPolicies]] {
      (UInt64(1)...200).map { LifePlan.random(seed: $0, features: features, steps: 60).policies }
    }
    #expect(count(lives(.all)) >= 10)
    #expect(count(lives(.former)) == 0)
  }

  /// Lives have edits that are too large, and limits of deletions.
  @Test func livesHaveLargeEditsAndDeletionLimits() {
    let plans = (UInt64(1)...200).map { LifePlan.random(seed: $0, features: .all, steps: 60) }
    #expect(plans.count(where: \.hasLargeEdits) >= 40)
    #expect(plans.count { $0.deletionLimit != nil } >= 40)
    let former = (UInt64(1)...200).map { LifePlan.random(seed: $0, features: .former, steps: 60) }
    #expect(!former.contains { $0.hasLargeEdits || $0.deletionLimit != nil })
  }

  /// Lives have tables with names that must be quoted.
  @Test func livesHaveHostileNames() {
    func count(_ features: LifeFeatures) -> Int {
      (UInt64(1)...200).count {
        LifePlan.random(seed: $0, features: features, steps: 60).schema.hasHostileNames
      }
    }
    #expect(count(.all) >= 20)
    #expect(count(.former) == 0)
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
