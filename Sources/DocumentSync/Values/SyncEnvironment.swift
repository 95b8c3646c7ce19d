import Foundation
import Logging
import SyncDirectory
import SyncModel
import SyncStore

/// What operations need from the world: time, random numbers, bounds.
///
/// Everything is injected, so that whole fleets of devices can run in one
/// process from one seed.
public struct SyncEnvironment: Sendable {
  /// Milliseconds since 1970.
  package var now: @Sendable () -> Int64
  /// The present time, to the millisecond.
  public var clock: @Sendable () -> Date {
    get { { [now] in Date(milliseconds: now()) } }
    set { now = { newValue().milliseconds } }
  }
  /// Random words, from which identifiers and turns are drawn.
  public var random: @Sendable () -> UInt64
  /// Diagnostics. Quiet unless set: reports and errors contain what users
  /// should know.
  public var logger: Logger
  /// The platform that the client's description names.
  public var platform: String
  /// How stores are opened. Its clock and its generator are replaced by ``now``
  /// and ``random``. Its `places` detect copies and older states of stores.
  package var store: StoreOptions
  /// How long a call on the store waits for other programs that write to it
  /// (`storeBusy`).
  public var storeTimeLimit: Duration {
    get { .seconds(store.busyTimeout) }
    set { store.busyTimeout = Double(newValue.milliseconds) / 1000 }
  }
  /// How many files are read at a time.
  public var parallelReads = 4
  /// About how many bytes of change sets are read before they are applied,
  /// which bounds memory.
  public var fetchWindowBytes = 4 << 20
  /// About how many bytes of own change sets a store keeps although every
  /// member of the document has applied them.
  public var keptChangeSetBytes = 1 << 20
  /// The counts and sizes from which on files are handled in portions, joined,
  /// and cleared away.
  package var thresholds = SyncThresholds()
  /// For how long a member may be absent before it is retired: counted by the
  /// clock of this device, over its synchronizations, each for a day at most;
  /// `nil` for ever. A member that returns becomes a new client,
  /// and loses nothing.
  public var retireAfter: Duration?
  /// How long a synchronization waits for answers about conflicts, in all;
  /// `nil` for as long as it takes. Afterwards the later change is shown for
  /// the time being, and the questions stay open.
  public var decisionTimeLimit: Duration? = .seconds(300)
  /// Waits for a while.
  public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// How long a call on the directory may take without any progress before the
  /// operation gives up on it (`directoryAway`); `nil` for as long as it takes.
  /// Publishing a file may take a second more for each 256 KiB. See
  /// `TimeLimitedDirectory`.
  public var directoryTimeLimit: Duration? = .seconds(60)
  /// How often calls on the directory that failed temporarily are repeated.
  public var retries = RetryingDirectory.Policy.standard
  /// Opens a directory of which only the path is known.
  public var openDirectory: @Sendable (String) throws -> any SharedDirectory

  /// Creates an environment with the system's clock and generator, and the
  /// usual bounds.
  public init() {
    now = { Date().milliseconds }
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
    store = StoreOptions()
    store.places = .system
    openDirectory = { FolderDirectory(root: $0) }
  }

  /// The options for opening a store, with this environment's clock and
  /// generator.
  var storeOptions: StoreOptions {
    var options = store
    options.now = now
    options.random = random
    return options
  }

  /// The directory, with a wrapper that repeats calls that failed temporarily,
  /// and gives up those that do not return.
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
