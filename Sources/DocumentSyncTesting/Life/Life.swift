/// Simulates the whole life of a document: devices that join and leave, stores
/// that are copied, moved and restored, files that arrive late and are cleared
/// away, devices that are retired and return; everything from one seed.
///
/// Some tables are the same in every history; what devices show of them is
/// compared with what was edited. Beside them most histories have tables that
/// were made up as ``Fleet`` does, of which all devices have to show what the
/// oracle says.
public enum Life {
  /// What came of one history.
  public struct Report: Sendable {
    /// The seed that repeats it.
    public var seed: UInt64
    /// What was violated; `nil` if nothing was.
    public var failure: FleetFailure?
    /// How many edits were made.
    public var edits: Int
    /// How often devices synchronized.
    public var syncs: Int
    /// How many rounds it took to come to rest.
    public var rounds: Int
    /// How many steps failed since files that they need had not arrived.
    public var passedOver: Int
  }

  /// Simulates one history.
  public static func run(
    seed: UInt64, features: LifeFeatures = .all, steps: Int = 60
  ) async throws -> Report {
    let outcome = try await LifeRun.carryOut(
      LifePlan.random(seed: seed, features: features, steps: steps))
    return Report(
      seed: seed, failure: outcome.failure, edits: outcome.edits, syncs: outcome.syncs,
      rounds: outcome.rounds, passedOver: outcome.passedOver)
  }

  /// The shortest history that was found to fail as the seed does, a line a
  /// step; `nil` if the seed does not fail.
  ///
  /// - Parameter attempts: How many shorter histories are tried at most.
  public static func shrunkScript(
    seed: UInt64, features: LifeFeatures = .all, steps: Int = 60, attempts: Int = 400
  ) async throws -> String? {
    var plan = LifePlan.random(seed: seed, features: features, steps: steps)
    guard var failure = try await LifeRun.carryOut(plan).failure else { return nil }
    var left = attempts
    var length = max(plan.steps.count / 2, 1)
    while left > 0 {
      var position = 0
      var isShorter = false
      while position < plan.steps.count, left > 0 {
        var shorter = plan
        shorter.steps.removeSubrange(position..<min(position + length, plan.steps.count))
        left -= 1
        if let found = try await LifeRun.carryOut(shorter).failure, found.kind == failure.kind {
          (plan, failure, isShorter) = (shorter, found, true)
        } else {
          position += length
        }
      }
      if length == 1, !isShorter { break }
      length = max(length / 2, 1)
    }
    let lines = plan.steps.enumerated().map { "\($0 + 1). \($1)" }
    let schema = plan.schema.script(filledBy: plan.start)
    return
      (schema + FleetScript.lines(plan.policies) + ["\(plan.devices) devices"] + lines + [
        "\(failure.kind): \(failure.details)"
      ])
      .joined(separator: "\n")
  }
}
