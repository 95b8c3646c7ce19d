import DocumentSyncTesting
import SyncDirectory
import SyncModel
import Testing

@testable import DocumentSync

/// A change set that is whole and cannot be applied is pending, like one that
/// is damaged.
struct RefusedChangeSetTests {
  /// A table with an index that SQLite cannot compute of one value; no author
  /// could have made a row of it.
  private static let schema =
    "CREATE TABLE num (id TEXT PRIMARY KEY, n); CREATE INDEX num_abs ON num (abs(n))"

  private func fleet() async throws -> (TestFleet, RelativePath) {
    let fleet = try await TestFleet(3)
    for manager in fleet.managers { try manager.edit(Self.schema) }
    try fleet[1].edit("INSERT INTO num VALUES ('a', 1)")
    try await fleet.settle()
    let directory = DamagedDirectory(of: fleet)
    let path = try directory.publishChangeSet(of: 1) { set in
      guard var table = set.tables.first(where: { $0.table == "num" }),
        let column = table.columns.firstIndex(of: "n")
      else {
        Issue.record("no changes of the table")
        return
      }
      table.actions = [RowAction.update.rawValue]
      table.shapes = [[column]]
      table.rowShapes = [0]
      table.times = [table.times[0].next]
      table.cells = table.cells.map { _ in ValueColumn() }
      table.cells[column].append(.integer(.min))
      set.tables = [table]
    }
    let bytes = try directory.bytes(path)
    let number = try ChangeSetCodec.decodeHeader(bytes).number
    try directory.publishMarker(of: 1) {
      $0.changeHead = VersionVector.Entry(number: number, hash: ContentHash(of: bytes))
    }
    return (fleet, path)
  }

  @Test func othersGoOnAndItsAuthorsLaterOnesWait() async throws {
    let (fleet, path) = try await fleet()
    let author = fleet[1].binding.client
    try fleet[2].put("y", "1")
    for _ in 0..<2 {
      let report = try await fleet[2].synchronize()
      #expect(report.waiting.map(\.client) == [author])
      #expect(report.waiting.map(\.reason) == [.refused])
      #expect(report.waiting.first?.path == path.description)
      #expect(report.waiting.first?.message.contains("integer overflow") ?? false)
    }
    #expect(fleet.changeSets(of: 2).count > 0)
    let report = try await fleet[0].synchronize()
    #expect(report.waiting.map(\.reason) == [.refused])
    #expect(try fleet[0].notes().contains("y=1"))
  }

  @Test func verifyNamesItUntilItIsGone() async throws {
    let (fleet, path) = try await fleet()
    _ = try await fleet[0].synchronize()
    let found = try await fleet[0].verify().findings.filter { $0.kind == .changeSetRefused }
    #expect(found.map(\.path) == [path.description])
    fleet.memory.take(path)
    #expect(try await fleet[0].verify().findings.allSatisfy { $0.kind != .changeSetRefused })
  }

  @Test func aResetPassesOverItAndSaysSo() async throws {
    let (fleet, path) = try await fleet()
    try fleet[0].put("x", "1")
    _ = try await fleet[0].synchronize()
    try fleet[2].put("y", "1")
    try await fleet[2].synchronize()
    try await fleet[0].reset()
    for index in [0, 2, 0, 2, 0] {
      let report = try await fleet[index].synchronize()
      #expect(report.waiting.map(\.reason) == [.refused])
      #expect(report.waiting.first?.path == path.description)
    }
    for index in [0, 2] {
      #expect(try fleet[index].notes().filter { ["x=1", "y=1"].contains($0) }.count == 2)
    }
    // When it is gone, nothing waits.
    fleet.memory.take(path)
    for index in [0, 2] { #expect(try await fleet[index].synchronize().waiting.isEmpty) }
  }
}
