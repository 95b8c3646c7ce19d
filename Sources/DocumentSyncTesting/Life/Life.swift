/// A simulation of the whole life of a document, from one seed: devices join and leave, are retired
/// and return; stores are copied, moved and restored; files arrive late and are removed.
///
/// Some tables are the same in every history; the simulation compares their rows on the devices
/// with the edits. Most histories also have random tables, drawn as in ``Fleet``: all devices must
/// show the rows of them that the oracle computes.
package enum Life {
  /// The outcome of one history.
  package struct Report: Sendable {
    /// The seed that repeats it.
    package var seed: UInt64
    /// The violation; `nil` if there was none.
    package var failure: FleetFailure?
    /// The number of edits.
    package var edits: Int
    /// The number of synchronizations.
    package var syncs: Int
    /// The number of rounds until all devices had nothing to do.
    package var rounds: Int
    /// The number of steps that failed because files that they need had not arrived.
    package var passedOver: Int
  }

  /// Simulates one history.
  package static func run(
    seed: UInt64, features: LifeFeatures = .all, steps: Int = 60
  ) async throws -> Report {
    let outcome = try await LifeRun.carryOut(
      LifePlan.random(seed: seed, features: features, steps: steps))
    return Report(
      seed: seed, failure: outcome.failure, edits: outcome.edits, syncs: outcome.syncs,
      rounds: outcome.rounds, passedOver: outcome.passedOver)
  }

  /// Returns the shortest history found that fails as the seed's does, one step on each line; `nil`
  /// if the seed's history does not fail.
  ///
  /// - Parameter attempts: The greatest number of shorter histories to try.
  package static func shrunkScript(
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
