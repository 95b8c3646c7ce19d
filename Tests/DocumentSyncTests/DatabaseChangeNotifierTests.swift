import DocumentSync
import DocumentSyncGRDB
import DocumentSyncTesting
import GRDB
import Testing

/// What the observations of an application's own database see of synchronizations.
@Suite struct DatabaseChangeNotifierTests {
  /// A pool that waits for other programs.
  private func pool(_ manager: DocumentSyncManager) throws -> DatabasePool {
    var configuration = Configuration()
    configuration.busyMode = .timeout(60)
    return try DatabasePool(path: manager.path, configuration: configuration)
  }

  /// The values that an observation gives, as a stream.
  private func bodies(_ pool: DatabasePool) -> AsyncValueObservation<[String]> {
    ValueObservation.tracking {
      try String.fetchAll($0, sql: "SELECT body FROM notes ORDER BY id")
    }.values(in: pool)
  }

  @Test(.timeLimit(.minutes(5)))
  func anObservationSeesWhatASynchronizationApplies() async throws {
    let fleet = try await TestFleet(2)
    let pool = try pool(fleet[1])
    let notifier = DatabaseChangeNotifier(events: fleet[1].events, database: pool)
    let notifying = Task { try await notifier.run() }
    var values = bodies(pool).makeAsyncIterator()
    let first = try await values.next()
    try fleet[0].put("x", "other")
    try await fleet[0].synchronize()
    try await fleet[1].synchronize()
    #expect(first?.contains("other") == false)
    // The first value may come twice.
    while let value = try await values.next(), !value.contains("other") {}
    // It ends with the manager.
    try await fleet[1].close()
    try await notifying.value
  }

  /// The application writes all the time, and so does the other device.
  @Test(.timeLimit(.minutes(5)))
  func underLoadTheLastValueIsWhatTheDatabaseHas() async throws {
    let fleet = try await TestFleet(2)
    let pool = try pool(fleet[1])
    let notifier = DatabaseChangeNotifier(events: fleet[1].events, database: pool)
    let notifying = Task { try await notifier.run() }
    let observation = ValueObservation.tracking {
      try Int.fetchOne($0, sql: "SELECT count(*) FROM notes WHERE id GLOB 'other-*'") ?? 0
    }
    let observing = Task {
      var last = 0
      for try await count in observation.values(in: pool) {
        // What is committed stays: counts never go down.
        #expect(count >= last)
        last = count
        if count == 40 { break }
      }
      return last
    }
    let writing = Task {
      for number in 0..<200 {
        try await pool.write {
          try $0.execute(sql: "INSERT INTO notes VALUES(?, '')", arguments: ["own-\(number)"])
        }
        await Task.yield()
      }
    }
    for number in 0..<40 {
      try fleet[0].put("other-\(number)", "")
      try await fleet[0].synchronize()
      try await fleet[1].synchronize()
    }
    try await writing.value
    #expect(try await observing.value == 40)
    notifying.cancel()
    try await notifying.value
  }

  /// An ordinary queue does not wait for the synchronization, which goes on writing.
  @Test(.timeLimit(.minutes(5)))
  func aQueueThatDoesNotWaitIsNotifiedAllTheSame() async throws {
    let fleet = try await TestFleet(2)
    let queue = try DatabaseQueue(path: fleet[1].path)
    let notifier = DatabaseChangeNotifier(events: fleet[1].events, database: queue)
    let notifying = Task { try await notifier.run() }
    let noticed = AsyncStream.makeStream(of: Void.self)
    let observation = DatabaseRegionObservation(tracking: .fullDatabase).start(
      in: queue, onError: { Issue.record($0) }, onChange: { _ in noticed.continuation.yield() })
    var count = 0
    for number in 0..<20 {
      try fleet[0].put("\(number)", "other")
      try await fleet[0].synchronize()
      try await fleet[1].synchronize()
      for await _ in noticed.stream { break }
      count += 1
    }
    #expect(count == 20)
    observation.cancel()
    try await fleet[1].close()
    try await notifying.value
  }

  @Test func aDatabaseThatWasClosedEndsTheNotifierWithItsError() async throws {
    let fleet = try await TestFleet(2)
    let pool = try pool(fleet[1])
    let notifier = DatabaseChangeNotifier(events: fleet[1].events, database: pool)
    try pool.close()
    try fleet[0].put("x", "other")
    try await fleet[0].synchronize()
    // The synchronization does not depend on the application's connection.
    try await fleet[1].synchronize()
    await #expect(throws: DatabaseError.self) { try await notifier.run() }
  }
}
