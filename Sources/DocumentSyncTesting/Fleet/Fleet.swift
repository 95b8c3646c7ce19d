/// Simulates whole fleets of devices that share one document: random schemas,
/// random SQL by programs that know nothing of syncing, files that arrive
/// late or out of order, clocks that are off by years; everything from one
/// seed. What the devices show is compared with an oracle that is written
/// apart from the product's merging.
///
/// `Documentation/Reliability.md` says what is simulated and checked.
public enum Fleet {
  /// What is the same for many histories.
  public struct Options: Hashable, Sendable {
    /// What schemas and histories may contain.
    public var features = FleetFeatures.all
    /// How many devices there are; `nil` draws between 2 and 5.
    public var devices: Int?
    /// Whether devices synchronize through managers, as apps do, or seal and
    /// apply directly, which is faster and knows more orders of delivery;
    /// `nil` draws one history in five for managers.
    public var usesManagers: Bool?
    /// About how many steps a history has.
    public var steps = 60

    /// The usual.
    public init() {}
  }

  /// What came of one history.
  public struct Report: Sendable {
    /// The seed that repeats it.
    public var seed: UInt64
    /// What was violated; `nil` if nothing was.
    public var failure: FleetFailure?
    /// Statements that were accepted by the schema.
    public var acceptedStatements: Int
    /// Statements that were refused.
    public var refusedStatements: Int
    /// How often devices synchronized before everything arrived.
    public var syncs: Int
    /// How many rounds it took to come to rest.
    public var rounds: Int
    /// Rows that existed and were not shown in the end.
    public var hiddenRows: Int
    /// What was shown in the end, in a form that tells histories apart; empty
    /// if the history failed.
    public var result: String
  }

  /// Simulates one history.
  public static func run(seed: UInt64, options: Options = Options()) async throws -> Report {
    var plans = RandomPlan(seed: seed, options: options)
    let outcome = try await FleetRun.carryOut(plans.draw())
    return Report(
      seed: seed, failure: outcome.failure, acceptedStatements: outcome.acceptedStatements,
      refusedStatements: outcome.refusedStatements, syncs: outcome.syncs,
      rounds: outcome.rounds, hiddenRows: outcome.hiddenRows,
      result: outcome.result)
  }

  /// The shortest script that was found to fail as the seed does; `nil` if
  /// the seed does not fail.
  ///
  /// - Parameter attempts: How many shorter histories are tried at most.
  public static func shrunkScript(
    seed: UInt64, options: Options = Options(), attempts: Int = 800
  ) async throws -> String? {
    var plans = RandomPlan(seed: seed, options: options)
    var shrinker = Shrinker(plans.draw(), attempts: attempts)
    guard let (plan, failure) = try await shrinker.shrink() else { return nil }
    return FleetScript(plan: plan, failure: failure).text
  }
}
