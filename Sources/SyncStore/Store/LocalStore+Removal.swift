import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Returns what would be lost if the store were taken out of sync.
  package func removalLoss() throws -> RemovalLoss { try read { try $0.removalLoss() } }

  /// Takes the database out of sync, in one transaction: removes the capture
  /// triggers and all bookkeeping, and leaves the rest as it is. Only
  /// ``close()`` may be called afterwards.
  ///
  /// - Parameter check: Called with what will be lost, in the same transaction. If it throws,
  ///   nothing is changed and the error is passed on.
  package func removeBookkeeping(_ check: (RemovalLoss) throws -> Void) throws {
    try write { session in
      try check(try session.removalLoss())
      try Bookkeeping.remove(session.database)
    }
    try options.forgetTokens(of: binding.client)
  }

  /// Does the same as ``removeBookkeeping(_:)``, but changes nothing and returns `false` if there
  /// are rows or change sets that only bookkeeping holds.
  package func removeBookkeeping() throws -> Bool {
    struct Refusal: Error {}
    do {
      try removeBookkeeping { loss in
        if loss.holdsRows { throw Refusal() }
      }
      return true
    } catch is Refusal {
      return false
    }
  }
}
