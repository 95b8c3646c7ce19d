import DocumentSyncTesting
import SyncDirectory
import SyncModel
import Synchronization
import Testing

@Suite struct RetryingDirectoryTests {
  private final class Sleeps: Sendable {
    let durations = Mutex<[Duration]>([])
  }

  private let faulty = FaultyDirectory(MemoryDirectory())
  private let sleeps = Sleeps()
  private let policy = RetryingDirectory.Policy(delays: [.milliseconds(1), .milliseconds(2)])
  private var directory: RetryingDirectory {
    RetryingDirectory(faulty, policy: policy) { [sleeps] duration in
      sleeps.durations.withLock { $0.append(duration) }
    }
  }

  @Test func anErrorThatPassesIsNotSeen() throws {
    faulty.script(
      .init(.fail(.transient), on: .publish), .init(.fail(.damaged), on: .publish, occurrence: 2))
    try directory.publish([1], at: try path("file"), by: Sample.alice)
    #expect(faulty.firedFaults.count == 2)
    #expect(sleeps.durations.withLock { $0 } == policy.delays)
    #expect(try directory.read(try path("file"), limit: 9) == [1])
  }

  @Test func anErrorThatStaysIsThrownAfterTheLastAttempt() throws {
    try expectError(.notFound) { _ = try directory.read(try path("missing"), limit: 9) }
    #expect(faulty.callCount == 3)
  }

  @Test(arguments: [DirectoryError.Code.noSpace, .away, .exists, .notWritable, .io])
  func anErrorThatDoesNotPassIsThrownAtOnce(code: DirectoryError.Code) throws {
    faulty.script(.init(.fail(code), on: .publish))
    try expectError(code) {
      try directory.publish([1], at: try path("file"), by: Sample.alice)
    }
    #expect(faulty.callCount == 1)
    #expect(sleeps.durations.withLock { $0.isEmpty })
  }

  @Test func aMissingFolderIsAnAnswerAndNotRetried() throws {
    try expectError(.notFound) { _ = try directory.list(try path("missing")) }
    #expect(faulty.callCount == 1)
  }

  @Test func aSleepThatThrowsEndsTheCall() throws {
    struct Cancelled: Error {}
    let directory = RetryingDirectory(faulty) { _ in throw Cancelled() }
    #expect(throws: Cancelled.self) { _ = try directory.read(try path("missing"), limit: 9) }
    #expect(faulty.callCount == 1)
  }

  @Test func aPublicationWhoseSuccessWasLostSucceedsWhenRepeated() throws {
    faulty.script(.init(.failAfterwards(.transient), on: .publish))
    try directory.publish([1], at: try path("file"), by: Sample.alice)
    #expect(faulty.firedFaults.count == 1)
    #expect(faulty.callCount == 2)
  }
}
