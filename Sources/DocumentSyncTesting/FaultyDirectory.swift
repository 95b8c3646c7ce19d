import SyncDirectory
import SyncModel

/// The error that every call throws after a simulated kill, until `restart()`.
public struct SimulatedStop: Error, Hashable, Sendable, CustomStringConvertible {
  /// Creates the error.
  public init() {}
  /// The error in words.
  public var description: String { "the process was stopped by a scripted fault" }
}

/// One device's view of another directory, with faults.
///
/// A test scripts the faults: each strikes once, at the nth call that it matches. In addition,
/// files of other devices can arrive late (``lag``), and calls can fail at random, from a seed.
public final class FaultyDirectory: SharedDirectory {
  /// The effect of a fault when it strikes.
  public enum Effect: Hashable, Sendable {
    /// The call does nothing and fails.
    case fail(DirectoryError.Code)
    /// The call does its work but fails.
    case failAfterwards(DirectoryError.Code)
    /// The process is killed before the call does anything.
    case stop
    /// The process is killed after writing the temporary file, before renaming it. For calls that
    /// publish nothing, the same as ``stop``.
    case stopBeforeRename
    /// The process is killed after the call has done its work.
    case stopAfterwards
    /// A read or download returns only the first bytes, without an error.
    case short(Int)
  }

  /// A scripted fault.
  public struct Fault: Hashable, Sendable {
    /// The kind of call that the fault strikes; `nil` for any.
    public var operation: DirectoryError.Operation?
    /// The text that the path must contain; `nil` for any path.
    public var pathPart: String?
    /// The number of the matching call that it strikes, from 1, counted from the call of
    /// ``script(_:)``.
    public var occurrence: Int
    /// What happens instead of the call or in addition to it.
    public var effect: Effect

    /// Creates a fault from its parts.
    public init(
      _ effect: Effect, on operation: DirectoryError.Operation? = nil, pathPart: String? = nil,
      occurrence: Int = 1
    ) {
      self.operation = operation
      self.pathPart = pathPart
      self.occurrence = occurrence
      self.effect = effect
    }
  }

  /// The delays with which files of other devices arrive.
  public struct Lag: Hashable, Sendable {
    /// The number of listings of a folder that omit a new name.
    public var listings = 0
    /// The number of reads of a listed file that fail as if the file were missing.
    public var missingReads = 0
    /// The number of later reads that return half of the file, without an error.
    public var halfReads = 0

    /// Creates a lag with the given delays.
    public init(listings: Int = 0, missingReads: Int = 0, halfReads: Int = 0) {
      self.listings = listings
      self.missingReads = missingReads
      self.halfReads = halfReads
    }
  }

  fileprivate struct State {
    var faults: [(fault: Fault, matches: Int)] = []
    var fired: [Fault] = []
    var isStopped = false
    var calls = 0
    var lag = Lag()
    var own: Set<RelativePath> = []
    var listingsSeen: [RelativePath: Int] = [:]
    var readsSeen: [RelativePath: Int] = [:]
    var random = SeededRandom(seed: 0)
    var rate = 0.0
    var codes: [DirectoryError.Code] = []
  }

  /// The directory that does the work.
  public let base: any SharedDirectory
  private let state = Locked(State())

  /// Wraps `base`, without faults.
  public init(_ base: any SharedDirectory) { self.base = base }

  /// Adds faults to the script.
  public func script(_ faults: Fault...) {
    state.withLock { $0.faults += faults.map { ($0, 0) } }
  }

  /// Makes calls fail before they do anything, with probability `rate` and a code drawn from
  /// `codes`.
  public func failAtRandom(rate: Double, codes: [DirectoryError.Code], seed: UInt64) {
    state.withLock {
      $0.rate = codes.isEmpty ? 0 : rate
      $0.codes = codes
      $0.random = SeededRandom(seed: seed)
    }
  }

  /// The delays with which files of other devices arrive. A change takes effect at once.
  public var lag: Lag {
    get { state.withLock { $0.lag } }
    set { state.withLock { $0.lag = newValue } }
  }

  /// The faults that have struck, in order. A test should check them; otherwise it could pass
  /// because no fault struck.
  public var firedFaults: [Fault] { state.withLock { $0.fired } }

  /// The number of calls, not counting those while the process was stopped.
  public var callCount: Int { state.withLock { $0.calls } }

  /// Whether a fault has stopped the process.
  public var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Restarts the process after a stop. The script continues.
  public func restart() {
    state.withLock { $0.isStopped = false }
  }

  /// The location of the base.
  public var location: String { base.location }

  /// See `SharedDirectory`.
  public func check(for access: DirectoryAccess) throws {
    try perform(.check, .root) { _ in try base.check(for: access) }
  }

  /// See `SharedDirectory.changes()`.
  public func changes() -> AsyncStream<Void>? { base.changes() }

  /// See `SharedDirectory`.
  public func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    try perform(.list, folder) { _ in
      let entries = try base.list(folder)
      return state.withLock { state in
        entries.filter { entry in
          guard let path = folder.appending(entry.name), !state.own.contains(path) else {
            return true
          }
          state.listingsSeen[path, default: 0] += 1
          return state.listingsSeen[path, default: 0] > state.lag.listings
        }
      }
    }
  }

  /// See `SharedDirectory`.
  public func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try perform(.read, path) { effect in
      let late = try arrival(of: path, .read)
      let bytes = try base.read(path, limit: limit)
      if case .short(let count) = effect { return Array(bytes.prefix(count)) }
      return late ? Array(bytes.prefix(bytes.count / 2)) : bytes
    }
  }

  /// See `SharedDirectory`.
  public func byteCount(of path: RelativePath) throws -> Int {
    try perform(.read, path) { _ in try base.byteCount(of: path) }
  }

  /// See `SharedDirectory`.
  public func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    try perform(.download, path) { effect in
      let late = try arrival(of: path, .download)
      var count: Int?
      if case .short(let short) = effect { count = short }
      guard late || count != nil else {
        return try base.download(path, to: localFile, limit: limit, progress: progress)
      }
      let bytes = try base.read(path, limit: limit)
      let file = try LocalFile(creating: localFile)
      try file.write(bytes.prefix(count ?? bytes.count / 2))
      try file.finish()
    }
  }

  /// See `SharedDirectory`.
  public func publish(
    _ content: [UInt8], at path: RelativePath, by client: ClientIdentifier
  ) throws {
    try perform(.publish, path) { effect in
      if effect == .stopBeforeRename { try leave(content, by: client) }
      try base.publish(content, at: path, by: client)
      state.withLock { _ = $0.own.insert(path) }
    }
  }

  /// See `SharedDirectory`.
  public func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    try perform(.upload, path) { effect in
      if effect == .stopBeforeRename {
        let file = try LocalFile(opening: localFile)
        try leave(try file.read(try file.size(), at: 0), by: client)
      }
      try base.upload(localFile: localFile, to: path, by: client, progress: progress)
      state.withLock { _ = $0.own.insert(path) }
    }
  }

  /// See `SharedDirectory`.
  public func remove(_ path: RelativePath) throws {
    try perform(.remove, path) { _ in try base.remove(path) }
  }

  /// See `SharedDirectory`.
  public func removeLeftovers(of client: ClientIdentifier) throws {
    try perform(.removeLeftovers, DirectoryLayout.temporary(of: client)) { _ in
      try base.removeLeftovers(of: client)
    }
  }

  /// Writes the temporary file of a publication, then throws ``SimulatedStop``.
  private func leave(_ content: [UInt8], by client: ClientIdentifier) throws {
    let number = state.withLock { $0.calls }
    try base.publish(
      content, at: DirectoryLayout.temporary(of: client) / "unfinished-\(number)", by: client)
    throw SimulatedStop()
  }

  /// Returns whether only half of another device's file has arrived; throws `notFound` while none
  /// of it has.
  private func arrival(
    of path: RelativePath, _ operation: DirectoryError.Operation
  ) throws -> Bool {
    let (reads, lag) = state.withLock { state in
      guard !state.own.contains(path), state.lag != Lag() else { return (Int.max, Lag()) }
      state.readsSeen[path, default: 0] += 1
      return (state.readsSeen[path, default: 0], state.lag)
    }
    if reads <= lag.missingReads { throw error(.notFound, operation, path) }
    return reads <= lag.missingReads + lag.halfReads
  }

  private func perform<Result>(
    _ operation: DirectoryError.Operation, _ path: RelativePath,
    _ body: (Effect?) throws -> Result
  ) throws -> Result {
    let effect = try state.withLock { try $0.begin(operation, path) }
    do {
      switch effect {
      case .fail(let code): throw error(code, operation, path)
      case .stop: throw SimulatedStop()
      case .stopBeforeRename where operation != .publish && operation != .upload:
        throw SimulatedStop()
      default: break
      }
      let result = try body(effect)
      switch effect {
      case .failAfterwards(let code): throw error(code, operation, path)
      case .stopAfterwards: throw SimulatedStop()
      default: return result
      }
    } catch let stop as SimulatedStop {
      state.withLock { $0.isStopped = true }
      throw stop
    }
  }

  private func error(
    _ code: DirectoryError.Code, _ operation: DirectoryError.Operation, _ path: RelativePath
  ) -> DirectoryError {
    DirectoryError(code, operation, path: "\(location)/\(path)", detail: "a simulated fault")
  }
}

extension FaultyDirectory.State {
  /// Counts a call; returns the effect of the fault that strikes it, if any. Throws while the
  /// process is stopped.
  fileprivate mutating func begin(
    _ operation: DirectoryError.Operation, _ path: RelativePath
  ) throws -> FaultyDirectory.Effect? {
    if isStopped { throw SimulatedStop() }
    calls += 1
    var struck: Int?
    for index in faults.indices {
      let fault = faults[index].fault
      guard fault.operation == nil || fault.operation == operation else { continue }
      if let part = fault.pathPart, !path.description.contains(part) { continue }
      faults[index].matches += 1
      if faults[index].matches == fault.occurrence, struck == nil { struck = index }
    }
    if let struck {
      let fault = faults.remove(at: struck).fault
      fired.append(fault)
      return fault.effect
    }
    if rate > 0, Double.random(in: 0..<1, using: &random) < rate,
      let code = codes.randomElement(using: &random)
    {
      return .fail(code)
    }
    return nil
  }
}
