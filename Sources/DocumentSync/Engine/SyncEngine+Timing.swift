extension SyncEngine {
  /// How long an engine waits for what.
  public struct Timing: Hashable, Sendable {
    /// How long the engine waits after a change for further changes, to synchronize them together.
    public var quietTime: Duration = .milliseconds(10)
    /// How long a change waits at most while further changes follow it.
    public var longestDelay: Duration = .seconds(2)
    /// The time between two synchronizations without any other reason.
    public var interval: Duration = .seconds(300)
    /// The same where the system does not report changes: on network mounts and FUSE, on systems other than
    /// Linux, and if a limit of the system is reached.
    public var pollingInterval: Duration = .seconds(15)
    /// The time between two looks whether a directory that was away has returned.
    public var probeInterval: Duration = .seconds(5)
    /// The pause after the first failure. It doubles with each further failure.
    public var firstPause: Duration = .seconds(1)
    /// The longest pause after failures.
    public var longestPause: Duration = .seconds(300)
    /// The part, from 0 to 1, by which an interval or a pause may be longer: drawn at random, so that
    /// devices that fail together do not come back together.
    public var jitter = 0.2

    /// Creates the default times.
    public init() {}

    /// These times, each at least as long as an engine can keep to without being busy all the time.
    var bounded: Timing {
      var timing = self
      timing.quietTime = max(quietTime, .zero)
      timing.longestDelay = max(longestDelay, timing.quietTime)
      timing.interval = max(interval, .seconds(1))
      timing.pollingInterval = max(pollingInterval, .seconds(1))
      timing.probeInterval = max(probeInterval, .milliseconds(100))
      timing.firstPause = max(firstPause, .milliseconds(100))
      timing.longestPause = max(longestPause, timing.firstPause)
      timing.jitter = jitter.isFinite ? min(max(jitter, 0), 1) : 0
      return timing
    }

    /// Returns the pause after a number of failures in a row, at least 1, without jitter.
    func pause(afterFailures count: Int) -> Duration {
      // Doubled at most 30 times: a duration has no room for more.
      let factor = 1 << min(max(count - 1, 0), 30)
      return min(firstPause * factor, longestPause)
    }

    /// Returns a duration with jitter.
    ///
    /// - Parameter random: A random word.
    func jittered(_ duration: Duration, _ random: UInt64) -> Duration {
      let part = Double(random >> 11) / Double(UInt64(1) << 53)
      return duration + duration * (jitter * part)
    }
  }
}
