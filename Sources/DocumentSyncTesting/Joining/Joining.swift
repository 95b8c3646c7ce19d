/// A simulation of databases that join a document with their rows, from one seed.
///
/// Schemas and rows are drawn as in ``Fleet``. The database is a former copy of the document's, or
/// was filled by itself; programs edit both before it joins. The simulation compares the rows of
/// both with those of the merged store: nothing may be lost, references must lead to the same rows
/// as before, and rows are the same only for a reason.
///
/// `Documentation/Reliability.md` describes the checks.
package enum Joining {
  /// The outcome of one joining.
  package struct Report: Sendable {
    /// The seed that repeats it.
    package var seed: UInt64
    /// The violation; `nil` if there was none.
    package var failure: FleetFailure?
    /// The number of rows in synchronized tables of the database that joined.
    package var rows = 0
    /// The number of these rows that became another row of the document.
    package var matchedRows = 0
    /// The number of these rows that the document refused.
    package var refusedRows = 0
    /// The number of references between these rows that were followed to the merged rows.
    package var references = 0
  }

  /// Simulates one joining.
  package static func run(
    seed: UInt64, features: FleetFeatures = .all
  ) async throws -> Report {
    try await JoiningRun.carryOut(JoiningPlan(seed: seed, features: features))
  }

  /// Returns the schema and the statements of the shortest joining found that fails as the seed's
  /// does, one on each line; `nil` if the seed's joining does not fail.
  ///
  /// - Parameter attempts: The greatest number of shorter joinings to try.
  package static func shrunkScript(
    seed: UInt64, features: FleetFeatures = .all, attempts: Int = 400
  ) async throws -> String? {
    var plan = try JoiningPlan(seed: seed, features: features)
    guard var failure = try await JoiningRun.carryOut(plan).failure else { return nil }
    var left = attempts
    var isShorter = true
    while isShorter, left > 0 {
      isShorter = false
      var index = 0
      while index < plan.statementCount, left > 0 {
        let shorter = plan.without(index)
        left -= 1
        if let found = try await JoiningRun.carryOut(shorter).failure, found.kind == failure.kind {
          (plan, failure, isShorter) = (shorter, found, true)
        } else {
          index += 1
        }
      }
    }
    return (plan.script + ["\(failure.kind): \(failure.details)"]).joined(separator: "\n")
  }
}
