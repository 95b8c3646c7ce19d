import SyncModel
import Testing

@testable import SyncStore

/// Whatever is edited at once, it is sealed as change sets that readers take.
@Suite struct ReadableChangeSetTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func options(_ change: (inout StoreOptions) -> Void) -> StoreOptions {
    var options = StoreOptions()
    change(&options)
    return options
  }

  @Test func moreTablesThanOneTakes() throws {
    let device = try scratch.devices(1, "CREATE TABLE t (k TEXT PRIMARY KEY)")[0]
    let count = CodecLimits.default.tables + 1
    let sealed = try device.store.write { session in
      let builder = try ChangeSetBuilder(
        session: session, binding: device.store.binding, options: device.store.options)
      for number in 0..<count {
        var table = TableChanges(
          table: SQLName("t\(number)"), identity: .primaryKey, keyColumns: ["k"], columns: [])
        table.actions = [RowAction.insert.rawValue]
        table.times = [HybridTime(milliseconds: 1)]
        table.keys[0].append(integer: 1)
        table.shapes = [[]]
        table.rowShapes = [0]
        try builder.add(table)
      }
      try builder.seal()
      return builder.sealed
    }
    #expect(sealed.map(\.rowCount) == [count - 1, 1])
  }

  /// Values that take next to no room in the file, in the widest of tables.
  @Test func moreValuesThanOneTakes() throws {
    let columns = (0..<1_364).map { "c\($0) INTEGER DEFAULT 0" }.joined(separator: ", ")
    let devices = try scratch.devices(
      2, "CREATE TABLE t (k INTEGER NOT NULL, \(columns), PRIMARY KEY (k)) WITHOUT ROWID",
      options: options {
        $0.rowsPerChangeSet = 1_000_000
        $0.bytesPerChangeSet = 1 << 30
      })
    try devices[0].run(
      """
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
      INSERT INTO t (k) SELECT i FROM n
      """)
    #expect(try devices[0].outgoing().count > 1)
    try converge(devices, "SELECT count(*), sum(c1363) FROM t", ["1000|0"])
  }

  @Test func aRowThatIsTooLongStaysAndIsNamed() throws {
    let device = try scratch.devices(1, "CREATE TABLE letter (k TEXT PRIMARY KEY, v BLOB)")[0]
    try device.run("INSERT INTO letter VALUES ('a', zeroblob(70000000))")
    let report = try device.store.seal()
    #expect(report.changeSets.isEmpty)
    let held = try #require(try device.store.status().heldEdits.first)
    #expect(held.table == "letter" && held.kind == .insertion && held.row == "“a”")
  }
}
