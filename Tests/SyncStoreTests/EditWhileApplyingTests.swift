import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// Another program edits the very rows that are being applied.
@Suite struct EditWhileApplyingTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Runs SQL on a thread of its own.
  private final class Editor: @unchecked Sendable {
    private let done = DispatchSemaphore(value: 0)
    private let program: Program
    private var error: (any Error)?

    /// Starts; the SQL waits for the lock that the caller's transaction has.
    init(_ device: Device, _ sql: String) {
      program = device.program
      Thread { [self] in
        do {
          try program.run(sql)
        } catch {
          self.error = error
        }
        done.signal()
      }.start()
    }

    func wait() throws {
      done.wait()
      if let error { throw error }
    }
  }

  @Test(arguments: ["wal", "delete"])
  func anEditThatWaitsForApplyingComesAfterIt(_ mode: String) throws {
    let devices = try scratch.devices(
      2,
      """
      CREATE TABLE t (id TEXT PRIMARY KEY, a, b);
      INSERT INTO t VALUES ('x', 0, 0), ('y', 0, 0)
      """)
    for device in devices { _ = try device.rows("PRAGMA journal_mode = \(mode)") }
    try devices[0].setClock(offset: 500)
    try devices[0].run("UPDATE t SET a = 'remote', b = 'remote'")
    try devices[1].setClock(offset: -500)
    var editors: [Editor] = []
    _ = try devices[1].store.apply(
      try devices[0].outgoing(),
      onApplied: { _ in
        // The row is written, and the transaction is not committed.
        editors.append(Editor(devices[1], "UPDATE t SET a = a || '+local' WHERE id = 'x'"))
      })
    #expect(editors.count == 1)
    for editor in editors { try editor.wait() }
    try converge(
      devices, "SELECT * FROM t ORDER BY id", ["x|remote+local|remote", "y|remote|remote"])
  }

  @Test func editsBetweenTheGroupsOfALongApplyAreKept() throws {
    var options = StoreOptions()
    options.rowsPerChangeSet = 20_000
    let devices = try scratch.devices(
      2, "CREATE TABLE t (id INTEGER, a, PRIMARY KEY (id)) WITHOUT ROWID", options: options)
    // More than one transaction of applying.
    try devices[0].run(
      """
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 130000)
      INSERT INTO t SELECT i, 'remote' FROM n
      """)
    let incoming = try devices[0].outgoing()
    #expect(incoming.count > 5)
    var applied = 0
    var editors: [Editor] = []
    _ = try devices[1].store.apply(
      incoming,
      onApplied: { _ in
        applied += 1
        if applied == 1 {
          editors.append(
            Editor(devices[1], "INSERT OR REPLACE INTO t VALUES (1, 'local'), (129999, 'local')"))
        }
      })
    for editor in editors { try editor.wait() }
    try converge(devices)
    let shown = try devices[0].rows("SELECT count(*), sum(a = 'local') FROM t")
    // The second row was edited before or after it came, by chance; the stamps
    // say that the edit is the later one.
    #expect(shown == ["130000|2"])
  }

  /// What another program did in the pauses between transactions.
  private final class Pauses: @unchecked Sendable {
    var device: Device?
    var rows: [[String]] = []
  }

  @Test(arguments: [true, false], ["wal", "delete"])
  func aProgramGetsItsTurnBetweenTransactions(_ isShort: Bool, _ mode: String) throws {
    let pauses = Pauses()
    var options = StoreOptions()
    options.rowsPerChangeSet = 1
    options.bytesPerChangeSet = 1
    options.transactionTime = isShort ? .zero : nil
    options.pause = { _ in
      guard let device = pauses.device else { return }
      do {
        try device.program.run("INSERT INTO own (text) VALUES ('written')")
        pauses.rows.append(try device.rows("SELECT count(*) FROM t"))
      } catch {
        Issue.record(error)
      }
    }
    let devices = try scratch.devices(
      2,
      "CREATE TABLE t (id TEXT PRIMARY KEY, a); CREATE TABLE own (id INTEGER PRIMARY KEY, text)",
      options: options)
    for device in devices { _ = try device.rows("PRAGMA journal_mode = \(mode)") }
    try devices[0].run("INSERT INTO t VALUES ('x', 1), ('y', 2), ('z', 3)")
    let incoming = try devices[0].outgoing()
    #expect(incoming.count == 3)
    pauses.device = devices[1]
    let report = try devices[1].store.apply(incoming)
    pauses.device = nil
    #expect(report.applied.count == 3)
    #expect(pauses.rows == (isShort ? [["1"], ["2"]] : []))
    try converge(
      devices, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM own)",
      [isShort ? "3|2" : "3|0"])
  }
}
