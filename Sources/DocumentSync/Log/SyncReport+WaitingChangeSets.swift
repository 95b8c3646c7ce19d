import SyncModel
import SyncStore

extension SyncReport.Wait {
  /// Creates a wait for a change set that the store holds and cannot apply.
  init(_ waiting: StoreStatus.WaitingChangeSet) {
    guard waiting.missing.isEmpty, let first = waiting.deletions.first else {
      self.init(waitingForOthers: waiting)
      return
    }
    let others = waiting.deletions.count - 1
    self.init(
      client: waiting.client, number: waiting.number, reason: .manyDeletions,
      message: "deletes \(first.deletedCount) of \(first.rowCount) rows of “\(first.table)”"
        + (others == 0 ? "" : ", and rows of \(others) other \(others == 1 ? "table" : "tables")")
        + ", and waits until you allow that")
  }

  private init(waitingForOthers waiting: StoreStatus.WaitingChangeSet) {
    let missing = waiting.missing.sorted { $0.key < $1.key }
      .map { "change set \($0.value) of \($0.key)" }
    self.init(
      client: waiting.client, number: waiting.number,
      reason: .dependencies,
      message: "needs "
        + (missing.isEmpty ? "an earlier change set" : missing.joined(separator: ", ")))
  }
}

extension SyncReport.Wait.Reason {
  /// Creates the reason for which a store refused a change set.
  init(_ reason: RefusedChangeSet.Reason) {
    switch reason {
    case .fork: self = .fork
    case .foreign: self = .misplaced
    case .contradictory: self = .refused
    }
  }
}
