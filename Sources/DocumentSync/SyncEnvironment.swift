import Foundation
import Logging
import SyncDirectory
import SyncStore

/// What operations need from the world: time, random numbers, bounds.
///
/// Everything is injected, so that whole fleets of devices can run in one
/// process from one seed.
public struct SyncEnvironment: Sendable {
  /// Milliseconds since 1970.
  public var now: @Sendable () -> Int64
  /// Random words, from which identifiers and turns are drawn.
  public var random: @Sendable () -> UInt64
  /// Diagnostics. Quiet unless set: what users should know is in reports and
  /// errors.
  public var logger: Logger
  /// What platform this is, as clients describe themselves.
  public var platform: String
  /// How stores are opened. Its clock and its generator are replaced by
  /// ``now`` and ``random``. Copies and older states of stores are noticed by
  /// its `places`.
  public var store: LocalStore.Options
  /// How many files are read at a time.
  public var parallelReads = 4
  /// About how many bytes of change sets are read before they are applied,
  /// which bounds memory.
  public var fetchWindowBytes = 4 << 20
  /// About how many bytes of own change sets a store keeps although every
  /// member of the document has applied them.
  public var keptChangeSetBytes = 1 << 20
  /// From how much on files are handled in portions, joined, and cleared away.
  package var thresholds = SyncThresholds()
  /// For how many milliseconds a member may not be seen before it is retired:
  /// counted by the clock here, over the synchronizations of this device, each
  /// for a day at most; `nil` for ever. Whoever returns becomes a new client,
  /// and loses nothing.
  public var retireAfter: Int64?
  /// How long a synchronization waits for those who are asked, in all; `nil`
  /// for as long as it takes. Afterwards the later change stands for the time
  /// being, and the questions stay open.
  public var decisionTimeLimit: Duration? = .seconds(300)
  /// Waits for a while.
  public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// How long a call on the directory may take without any progress before the
  /// operation gives up on it (`directoryAway`); `nil` for as long as it takes.
  /// A file that is published has a second more for each 256 KiB. See
  /// `TimeLimitedDirectory`.
  public var directoryTimeLimit: Duration? = .seconds(60)
  /// How often calls on the directory are repeated that failed in passing.
  public var retries = RetryingDirectory.Policy.standard
  /// How a directory is opened of which only the path is known.
  public var openDirectory: @Sendable (String) throws -> any SharedDirectory

  /// The system's clock and generator, and the usual bounds.
  public init() {
    now = { Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)) }
    random = {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
    logger = Logger(label: "DocumentSync") { _ in SwiftLogNoOpLogHandler() }
    #if os(Linux)
      platform = "Linux"
    #elseif os(macOS)
      platform = "macOS"
    #elseif os(iOS)
      platform = "iOS"
    #else
      platform = "other"
    #endif
    store = LocalStore.Options()
    store.places = .system
    openDirectory = { FolderDirectory(root: $0) }
  }

  /// The options for opening a store, with this environment's clock and
  /// generator.
  var storeOptions: LocalStore.Options {
    var options = store
    options.now = now
    options.random = random
    return options
  }

  /// The directory, with the calls repeated that failed in passing, and those
  /// given up that do not come back.
  func retrying(_ directory: any SharedDirectory) -> any SharedDirectory {
    if directory is RetryingDirectory { return directory }
    let limited = directoryTimeLimit.map { TimeLimitedDirectory(directory, limit: $0) }
    return RetryingDirectory(limited ?? directory, policy: retries)
  }

  /// A generator that draws from ``random``.
  var generator: InjectedGenerator { InjectedGenerator(source: random) }
}

/// Draws its words from a closure.
struct InjectedGenerator: RandomNumberGenerator {
  let source: @Sendable () -> UInt64

  mutating func next() -> UInt64 { source() }
}
