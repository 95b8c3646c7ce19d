import Foundation
import SyncModel
import SyncStore

/// The conflict journal of the store, and the answers and policies that decide
/// conflicts.
///
/// No method here waits for a synchronization that is under way, not even for
/// one that waits for an answer. Methods that only read answer from the last
/// committed state, and wait for the transaction that runs only where ``status()``
/// does; the others always wait for it. Answers and
/// restored values are ordinary edits: the synchronization under way or the next
/// one sends them.
extension DocumentSyncManager {
  /// Returns the entries of the journal that are in the store, the newest first. Older ones are in the
  /// file beside it: see ``conflicts(before:limit:)``.
  ///
  /// - Parameter onlyOpen: Whether to leave out conflicts that are decided.
  public func conflicts(onlyOpen: Bool = false) async throws -> [Conflict] {
    try await ask("list the conflicts") { try $0.conflicts(onlyOpen: onlyOpen) }
  }

  /// Returns a part of the journal, the newest entries first: those in the store and those in the file
  /// beside it, to which the oldest ones go. It leaves out what cannot be read (``conflictPlaces()``).
  ///
  /// ```swift
  /// var next: Int64?
  /// repeat {
  ///   let page = try await manager.conflicts(before: next, limit: 1000)
  ///   show(page.conflicts)
  ///   next = page.next
  /// } while next != nil
  /// ```
  ///
  /// - Parameters:
  ///   - number: The number before which the part begins, as the part before it gives it; `nil` for the
  ///     first one.
  ///   - limit: The most entries of the part.
  public func conflicts(before number: Int64?, limit: Int) async throws -> Conflict.Page {
    try await ask("list the conflicts") { try $0.conflicts(before: number, limit: max(limit, 1)) }
  }

  /// Returns one entry of the journal. Throws `noSuchConflict`.
  public func conflict(_ number: Int64) async throws -> Conflict {
    try await ask("show the conflict") { try $0.conflict(number) }
  }

  /// Returns the number of open questions.
  public func openConflictCount() async throws -> Int {
    try await ask("count the conflicts") { try $0.openConflictCount() }
  }

  /// Returns how many entries of the journal are in the store, and how many in the file beside it.
  public func conflictPlaces() async throws -> Conflict.Places {
    try await ask("list the conflicts") { try $0.conflictPlaces() }
  }

  /// Returns which entries the journal does not have any more.
  public func droppedConflicts() async throws -> Conflict.Dropped {
    try await ask("list the conflicts") { try $0.droppedConflicts() }
  }

  /// Answers an open question.
  ///
  /// Errors: `noSuchConflict`; `conflictNotOpen` if it was decided before;
  /// `editRefused` if a constraint refuses the edit; then nothing is changed.
  /// If the question is about a cell of a row that does not exist any more, any
  /// answer closes it: it is `superseded`.
  ///
  /// Returns the same as ``restoreConflict(_:side:)``.
  @discardableResult
  public func resolveConflict(
    _ number: Int64, by answer: Conflict.Answer
  ) async throws -> [SQLName] {
    try await use("resolve the conflict") { try $0.resolveConflict(number, by: answer) }
  }

  /// Restores the side that lost.
  ///
  /// Errors as for ``resolveConflict(_:by:)``.
  ///
  /// Returns the columns of a row that has come back that have their defaults,
  /// since this device does not know their values: it has deleted the row itself.
  ///
  /// - Parameters:
  ///   - number: The number of the conflict in the journal.
  ///   - side: The side to restore, if the store shows neither.
  @discardableResult
  public func restoreConflict(
    _ number: Int64, side: Conflict.Outcome? = nil
  ) async throws -> [SQLName] {
    try await use("restore the conflict") { try $0.restoreConflict(number, side: side) }
  }

  /// Returns the policies of this device.
  public func policies() async throws -> SyncPolicies {
    try await ask("read the policies") { try $0.policies() }
  }

  /// Changes the policies of this device, durably. Throws `policyUnsuitable` if
  /// they name tables or columns that are not synchronized.
  public func setPolicies(
    _ change: @escaping @Sendable (inout SyncPolicies) -> Void
  ) async throws {
    try await use("set the policies") { try $0.setPolicies(change) }
  }

  /// Runs work that changes the store, between the transactions of a synchronization.
  func use<Output: Sendable>(
    _ verb: String, _ work: @escaping @Sendable (LocalStore) throws -> Output
  ) async throws -> Output {
    try checkHasNotLeft(verb)
    let store = store
    return try await journalQueue.run(
      StoreOperation(verb, environment: environment) { try work(store) }, events: events)
  }
}
