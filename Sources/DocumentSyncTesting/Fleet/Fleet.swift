/// A simulation of fleets of devices that share one document, from one seed: random schemas, random
/// SQL of programs that do not know about syncing, files that arrive late or out of order, clocks
/// that are wrong by years. It compares the rows that the devices show with those of an oracle,
/// whose code is independent of the product's merging.
///
/// `Documentation/Reliability.md` describes the simulation and its checks.
package enum Fleet {
  /// The options that many histories share.
  package struct Options: Hashable, Sendable {
    /// The features that schemas and histories may contain.
    package var features = FleetFeatures.all
    /// The features that every history has, and not only some, from ``FleetFeatures/optional``.
    package var always: FleetFeatures = []
    /// The number of devices; `nil` draws between 2 and 5.
    package var devices: Int?
    /// Whether devices synchronize through managers, as apps do. If not, they seal and apply
    /// directly, which is faster and has more orders of delivery. `nil` draws managers for one
    /// history in five.
    package var usesManagers: Bool?
    /// The approximate number of steps of a history.
    package var steps = 60

    /// Creates the usual options.
    package init() {}
  }

  /// The outcome of one history.
  package struct Report: Sendable {
    /// The seed that repeats it.
    package var seed: UInt64
    /// The violation; `nil` if there was none.
    package var failure: FleetFailure?
    /// The number of statements that the schema accepted.
    package var acceptedStatements: Int
    /// The number of statements that the schema refused.
    package var refusedStatements: Int
    /// The number of synchronizations before all files arrived.
    package var syncs: Int
    /// The number of rounds until all devices had nothing to do.
    package var rounds: Int
    /// The number of rows that existed and were not shown at the end.
    package var hiddenRows: Int
    /// The size that the history reached.
    package var size: Size
    /// The rows shown in the end, in a form that tells histories apart; empty
    /// if the history failed.
    package var result: String
  }

  /// The size that a history reached.
  package struct Size: Hashable, Sendable {
    /// The most rows that one table of one device showed after a synchronization.
    package var rowsInOneTable = 0
    /// The most rows that all synchronized tables of one device showed.
    package var rows = 0
    /// The change sets that all devices published.
    package var changeSets = 0
    /// The segments to which managers joined change sets.
    package var segments = 0
    /// The change sets that managers removed.
    package var removedChangeSets = 0
    /// The edits that devices kept back since no change set can carry them.
    package var heldEdits = 0
    /// Those that they kept back to the end: no program could edit the rows, which were not shown.
    package var lastingHeldEdits = 0
    /// The rows that were edited to undo change sets.
    package var undoneRows = 0

    /// Whether one device showed 200 rows.
    package var hasManyRows: Bool { rows >= RandomSize.rows }
    /// Whether 60 change sets were published.
    package var hasManyChangeSets: Bool { changeSets >= RandomSize.changeSets }
  }

  /// Simulates one history.
  package static func run(seed: UInt64, options: Options = Options()) async throws -> Report {
    var plans = RandomPlan(seed: seed, options: options)
    let outcome = try await FleetRun.carryOut(try plans.draw())
    return Report(
      seed: seed, failure: outcome.failure, acceptedStatements: outcome.acceptedStatements,
      refusedStatements: outcome.refusedStatements, syncs: outcome.syncs,
      rounds: outcome.rounds, hiddenRows: outcome.hiddenRows, size: outcome.size,
      result: outcome.result)
  }

  /// Returns the script of the shortest history found that fails as the seed's does; `nil` if the
  /// seed's history does not fail.
  ///
  /// - Parameter attempts: The greatest number of shorter histories to try.
  package static func shrunkScript(
    seed: UInt64, options: Options = Options(), attempts: Int = 800
  ) async throws -> String? {
    var plans = RandomPlan(seed: seed, options: options)
    var shrinker = Shrinker(try plans.draw(), attempts: attempts)
    guard let (plan, failure) = try await shrinker.shrink() else { return nil }
    return FleetScript(plan: plan, failure: failure).text
  }
}
