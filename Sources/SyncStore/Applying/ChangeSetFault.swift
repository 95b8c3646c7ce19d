import GRDB
import SyncModel

/// The error that a change set cannot be applied because of its content, not because of the store
/// or the disk.
struct ChangeSetFault: Error {
  /// The last change set of the transaction.
  let item: PendingChangeSets.Item
  /// Whether it was the only one in the transaction, so that it is the cause.
  let isAlone: Bool
  /// What the report says of it if it is the cause.
  let refusal: RefusedChangeSet

  /// Creates a fault from an error; returns `nil` if the error does not concern the change set.
  init?(_ error: any Error, in item: PendingChangeSets.Item, isAlone: Bool) {
    guard let refusal = RefusedChangeSet(error, of: item.header, hash: item.hash) else {
      return nil
    }
    self.item = item
    self.isAlone = isAlone
    self.refusal = refusal
  }
}

extension RefusedChangeSet {
  /// Creates a refusal from an error; returns `nil` if the error does not concern the change set.
  init?(_ error: any Error, of header: SyncChangeSet.Header, hash: ContentHash) {
    (client, number, self.hash) = (header.client, header.number, hash)
    switch error {
    case let error as StoreError:
      switch error.code {
      case .foreignChangeSet: reason = .foreign
      case .fork: reason = .fork
      case .malformedChangeSet: reason = .contradictory
      default: return nil
      }
      message = error.message
    case let error as CodecError:
      reason = .contradictory
      message = "it contradicts itself: \(error.what)"
    case let error as DatabaseError where error.concernsValues:
      reason = .contradictory
      message = "it cannot be applied: \(error.message ?? "\(error.resultCode)")"
    default: return nil
    }
  }
}
