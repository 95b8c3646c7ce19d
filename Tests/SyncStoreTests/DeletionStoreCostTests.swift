import Foundation
import SyncModel
import Synchronization
import Testing

@testable import SyncStore

/// What deletions read, counted: rows that are deleted together are looked up together.
@Suite struct DeletionStoreCostTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// Counts the queries that run on stores.
  private final class Counter: Sendable {
    private let queries = Mutex<[String]>([])

    var options: StoreOptions {
      var options = StoreOptions()
      options.onStatement = { sql in
        if sql.hasPrefix("SELECT") { self.queries.withLock { $0.append(sql) } }
      }
      return options
    }

    /// Returns the queries that ran since it was last called.
    func take() -> [String] {
      queries.withLock { queries in
        defer { queries = [] }
        return queries
      }
    }
  }

  /// Two devices with a thousand persons, and a row for each that refers to it by a column without
  /// an index.
  private func devices(_ counter: Counter) throws -> [Device] {
    var configuration = StoreConfiguration()
    configuration.references = ["meta": ["person": "person"]]
    return try scratch.devices(
      2,
      """
      CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE meta (name TEXT, person INTEGER, value TEXT, PRIMARY KEY (name, person));
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO person SELECT i, 'p' || i FROM n;
      INSERT INTO meta SELECT 'm', id, 'v' FROM person;
      """, configuration: configuration, options: counter.options)
  }

  private func blockReads(_ queries: [String]) -> Int {
    queries.count { $0.contains("block FROM docsync_stamps_") }
  }

  /// The queries that have to read all of the referring rows, since they look for a person.
  private func scans(_ queries: [String]) -> [String] {
    queries.filter { sql in
      guard let range = sql.range(of: " FROM \"meta\" WHERE ") else { return false }
      return !sql[range.upperBound...].contains("\"name\"")
    }
  }

  @Test func sealingDeletionsReadsABlockOfStatesForManyRows() throws {
    let counter = Counter()
    let devices = try devices(counter)
    try devices[0].run("DELETE FROM person WHERE id % 2 = 0")
    _ = counter.take()
    _ = try devices[0].store.seal()
    let reads = blockReads(counter.take())
    #expect(reads < 50)
  }

  @Test func sealingDeletionsDoesNotReadRowsThatReferToRowsDeletedEarlier() throws {
    let counter = Counter()
    let devices = try devices(counter)
    try devices[0].run("DELETE FROM person WHERE id % 2 = 0")
    _ = try devices[0].store.seal()
    try devices[0].run("DELETE FROM meta WHERE person < 20; DELETE FROM person WHERE id < 20")
    _ = counter.take()
    _ = try devices[0].store.seal()
    let queries = counter.take()
    #expect(queries.count < 500)
    // The rows that refer to persons deleted now are still found.
    try devices[0].run("DELETE FROM person WHERE id = 21")
    try devices[1].receive(from: devices[0])
    try devices[0].receive(from: devices[1])
    let digests = try devices.map { try $0.store.digest() }
    #expect(digests[0].visible == digests[1].visible)
    #expect(try devices[1].rows("SELECT count(*) FROM meta") == ["981"])
  }

  @Test func applyingDeletionsReadsReferringRowsTogether() throws {
    let counter = Counter()
    let devices = try devices(counter)
    // Half of the rows that refer to the persons go as well.
    try devices[1].run(
      "DELETE FROM person WHERE id % 2 = 0; DELETE FROM meta WHERE person % 4 = 0")
    let outgoing = try devices[1].outgoing()
    // Only the store that was created counts: the other one was a snapshot.
    _ = counter.take()
    _ = try devices[0].store.apply(outgoing)
    let queries = counter.take()
    let found = scans(queries)
    let (byKeys, byValues) = (
      found.count { $0.contains("docsync_wanted_keys") },
      found.count { !$0.contains("docsync_wanted_keys") }
    )
    #expect((1...3).contains(byKeys))
    #expect((1...3).contains(byValues))
    let reads = blockReads(queries)
    #expect(reads < 50)
    let digests = try devices.map { try $0.store.digest() }
    #expect(digests[0].visible == digests[1].visible)
  }
}
