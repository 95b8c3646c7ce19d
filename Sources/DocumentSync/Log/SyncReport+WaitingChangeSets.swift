import SyncDirectory
import SyncModel
import SyncStore

extension SyncReport.Wait {
  /// Creates a wait for a change set that the store holds and cannot apply.
  init(_ waiting: StoreStatus.WaitingChangeSet) {
    guard waiting.missing.isEmpty, !waiting.deletions.isEmpty else {
      self.init(waitingForOthers: waiting)
      return
    }
    self.init(client: waiting.client, number: waiting.number, deletions: waiting.deletions)
  }

  /// Creates a wait for a change set that deletes too many rows.
  init(
    client: ClientIdentifier, number: UInt64, deletions: [StoreStatus.WaitingChangeSet.Deletions]
  ) {
    let others = deletions.count - 1
    let first = deletions.first.map {
      "deletes \($0.deletedCount) of \($0.rowCount) rows of “\($0.table)”"
    }
    self.init(
      client: client, number: number, reason: .manyDeletions,
      message: (first ?? "deletes many rows")
        + (others > 0 ? ", and rows of \(others) other \(others == 1 ? "table" : "tables")" : "")
        + ", and waits until you allow that")
  }

  /// Creates a wait for a change set that the store refused.
  init(_ refused: RefusedChangeSet, path: RelativePath) {
    self.init(
      client: refused.client, number: refused.number, reason: Reason(refused.reason),
      message: refused.message, path: path.description)
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
