import SyncModel
import Testing

@testable import DocumentSyncTesting
@testable import SyncStore

/// Which rows may stay as they are when the change sets of a fleet are undone.
@Suite struct UndoCheckTests {
  private typealias Undo = AppliedChangeSet.Undo

  private func undo(
    _ reason: Undo.Reason, key: Int64 = 1, columns: [SQLName] = [], table: SQLName = "note"
  ) -> Undo {
    let row = Undo.LeftRow(
      table: table, keyColumns: ["id"], key: [.integer(key)], columns: columns, reason: reason,
      message: "")
    return Undo(tables: [], leftRows: [row], leftCount: 1)
  }

  /// Nothing was edited since.
  @Test func onlyWhatIsRefusedOrHiddenStays() {
    for reason in Undo.Reason.allCases {
      var check = UndoCheck()
      let undo = undo(reason)
      let isExpected = reason == .refused || reason == .hidden
      #expect(check.firstUnexpected(in: undo) == (isExpected ? nil : undo.leftRows[0]))
    }
  }

  @Test func aRowThatStayedCountsAsChangedForEarlierChangeSets() {
    for reason in [Undo.Reason.refused, .hidden] {
      var check = UndoCheck()
      #expect(check.firstUnexpected(in: undo(reason)) == nil)
      #expect(check.firstUnexpected(in: undo(.changedSince)) == nil)
      #expect(check.firstUnexpected(in: undo(.changedSince, columns: ["a"])) == nil)
      #expect(check.firstUnexpected(in: undo(.unknown)) != nil)
      #expect(check.firstUnexpected(in: undo(.changedSince, key: 2)) != nil)
      #expect(check.firstUnexpected(in: undo(.changedSince, table: "tag")) != nil)
    }
  }

  @Test func ofARowOnlyTheColumnsThatStayedCount() {
    var check = UndoCheck()
    #expect(check.firstUnexpected(in: undo(.refused, columns: ["a"])) == nil)
    #expect(check.firstUnexpected(in: undo(.changedSince, columns: ["a", "b"])) != nil)
    #expect(check.firstUnexpected(in: undo(.changedSince, columns: ["a"])) == nil)
    // The row was inserted by this change set.
    #expect(check.firstUnexpected(in: undo(.changedSince)) == nil)
    #expect(check.firstUnexpected(in: undo(.changedSince, columns: ["b"])) == nil)
  }
}
