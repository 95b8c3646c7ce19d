/// The clock of an engine. Its time never goes backwards; only differences of times have a meaning.
package struct EngineClock: Sendable {
  /// Returns the present time.
  package var now: @Sendable () -> Duration
  /// Pauses a task for a duration.
  package var sleep: @Sendable (Duration) async throws -> Void

  /// Creates a clock from its parts.
  package init(
    now: @escaping @Sendable () -> Duration,
    sleep: @escaping @Sendable (Duration) async throws -> Void
  ) {
    self.now = now
    self.sleep = sleep
  }

  /// The system's clock, which also counts the time while the system sleeps.
  package static let system: EngineClock = {
    let start = ContinuousClock.now
    return EngineClock(
      now: { ContinuousClock.now - start },
      sleep: { try await Task.sleep(for: $0, clock: .continuous) })
  }()
}
