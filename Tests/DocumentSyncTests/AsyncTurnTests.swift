import Testing

@testable import DocumentSync

/// Tasks that come one after the other.
@Suite struct AsyncTurnTests {
  /// Something to wait for.
  private struct Signal {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func send() { continuation.finish() }
    func wait() async { for await _ in stream {} }
  }

  @Test func taskThatIsCancelledWhileItWaitsEndsAndTheNextTakesItsTurn() async throws {
    let turn = AsyncTurn()
    let (began, end) = (Signal(), Signal())
    let first = Task {
      try await turn.take {
        began.send()
        await end.wait()
      }
    }
    await began.wait()
    let second = Task { try await turn.take { Issue.record("it was not its turn") } }
    while turn.waitingCount < 1 { await Task.yield() }
    let third = Task { try await turn.take { true } }
    while turn.waitingCount < 2 { await Task.yield() }
    second.cancel()
    // The first one still has the turn.
    await #expect(throws: CancellationError.self) { try await second.value }
    #expect(turn.waitingCount == 1)
    end.send()
    try await first.value
    #expect(try await third.value)
    #expect(try await turn.take { turn.waitingCount } == 0)
  }

  @Test func taskThatWasCancelledBeforeDoesNotWait() async throws {
    let turn = AsyncTurn()
    let (began, end) = (Signal(), Signal())
    let first = Task {
      try await turn.take {
        began.send()
        await end.wait()
      }
    }
    await began.wait()
    let second = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      _ = try await turn.take { Issue.record("it was not its turn") }
    }
    await #expect(throws: CancellationError.self) { try await second.value }
    end.send()
    try await first.value
    #expect(try await turn.take { true })
  }
}
