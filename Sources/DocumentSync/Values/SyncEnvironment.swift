import Foundation
import Logging
import SyncDirectory
import SyncModel
import SyncStore

/// The clock, the random numbers and the limits that operations work with.
///
/// Everything is injected, so that whole fleets of devices can run in one
/// process from one seed.
public struct SyncEnvironment: Sendable {
  /// Returns the present time, in milliseconds since 1970.
  package var now: @Sendable () -> Int64
  /// Returns the present time, to the millisecond.
  public var clock: @Sendable () -> Date {
    get { { [now] in Date(milliseconds: now()) } }
    set { now = { newValue().milliseconds } }
  }
  /// Returns random words, for identifiers and turns.
  public var random: @Sendable () -> UInt64
  /// The log for diagnostics. It is quiet unless set: reports and errors
  /// contain what users need to know.
  public var logger: Logger
  /// The platform that the client's description names.
  public var platform: String
  /// The options for opening stores. ``now`` and ``random`` replace their clock
  /// and generator. Their `places` detect copies and older states of stores.
  package var store: StoreOptions
  /// How long a call on the store waits for other programs that write to it
  /// (`storeBusy`).
  public var storeTimeLimit: Duration {
    get { .seconds(store.busyTimeout) }
    set { store.busyTimeout = Double(newValue.milliseconds) / 1000 }
  }
  /// About how long a transaction keeps programs from writing to the store while change sets are
  /// applied; `nil` for no limit. Programs that wait get their turn between two transactions. A
  /// change set is applied as a whole, however long it takes.
  public var storeTransactionTime: Duration? {
    get { store.transactionTime }
    set { store.transactionTime = newValue }
  }
  /// How long an operation waits for a synchronization of the store by another process or manager
  /// (`storeInUse`).
  public var storeInUseTimeLimit: Duration = .zero
  /// The number of files that are read at the same time.
  public var parallelReads = 4
  /// About how many bytes of change sets are read before they are applied; this
  /// limits the memory in use.
  public var fetchWindowBytes = 4 << 20
  /// About how many bytes of its own change sets a store still holds after
  /// every member of the document has applied them.
  public var keptChangeSetBytes = 1 << 20
  /// The counts and sizes above which files are handled in portions, joined,
  /// and removed.
  package var thresholds = SyncThresholds()
  /// The absence after which a member is retired: counted by the clock of this
  /// device over its own synchronizations, at most a day for each; `nil` for
  /// never. A member that returns becomes a new client, and loses nothing.
  public var retireAfter: Duration?
  /// The greatest share of a table's rows that a synchronization deletes without being told to, from 0
  /// to 1, where the table has 100 rows or more; `nil` for no limit.
  ///
  /// Change sets of others that would delete more rows than that wait, as do their authors' later ones
  /// (``SyncReport/Wait/Reason/manyDeletions``). All others are applied. The next synchronization that
  /// allows deletions applies them: ``DocumentSyncManager/synchronize(allowingDeletions:onProgress:)``.
  /// Deletions that were received little by little do not count together, and neither do those that
  /// come with a whole store.
  public var deletionLimit: Double?
  /// How long a synchronization waits for answers about conflicts, in all;
  /// `nil` for no limit. Afterwards the store shows the later change for the
  /// time being, and the questions stay open.
  public var decisionTimeLimit: Duration? = .seconds(300)
  /// Pauses a task for a duration.
  public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// How long a call on the directory may make no progress before the operation
  /// gives up on it (`directoryAway`); `nil` for no limit. Publishing a file
  /// may take a second more for each 256 KiB. See `TimeLimitedDirectory`.
  public var directoryTimeLimit: Duration? = .seconds(60)
  /// Returns the time by which ``directoryTimeLimit`` is measured.
  package var directoryNow: @Sendable () -> ContinuousClock.Instant = { .now }
  /// The repetition of calls on the directory that failed temporarily.
  public var retries = RetryingDirectory.Policy.standard
  /// Opens a directory from its path alone.
  public var openDirectory: @Sendable (String) throws -> any SharedDirectory

  /// Creates an environment with the system's clock and generator, and the
  /// default limits.
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
    store.schemaPause = .milliseconds(500)
    openDirectory = Self.folder
  }

  /// Returns the folder at a path. Throws `directoryFailed` if the text is neither an absolute path nor
  /// that of a file: it is the location of a directory of another kind.
  @Sendable private static func folder(at path: String) throws -> any SharedDirectory {
    guard path.hasPrefix("/") || FileManager.default.fileExists(atPath: path) else {
      throw SyncError(
        .directoryFailed, operation: "open the directory", path: path,
        message: "The shared directory is not a folder, and cannot be opened by its location.",
        remedy: "Give the directory when you open the store, or set “openDirectory” of the "
          + "environment.")
    }
    return FolderDirectory(root: path)
  }

  /// The options for opening a store, with this environment's clock and
  /// generator.
  var storeOptions: StoreOptions {
    var options = store
    options.now = now
    options.random = random
    return options
  }

  /// Returns the directory in a wrapper that repeats calls that failed
  /// temporarily, and gives up on those that do not return.
  func retrying(_ directory: any SharedDirectory) -> any SharedDirectory {
    if directory is RetryingDirectory { return directory }
    let limited = directoryTimeLimit.map {
      TimeLimitedDirectory(directory, limit: $0, now: directoryNow)
    }
    return RetryingDirectory(limited ?? directory, policy: retries)
  }

  /// A generator that draws from ``random``.
  var generator: InjectedGenerator { InjectedGenerator(source: random) }
}

/// A generator that draws its words from a closure.
struct InjectedGenerator: RandomNumberGenerator {
  let source: @Sendable () -> UInt64

  mutating func next() -> UInt64 { source() }
}
