import SyncDirectory
import SyncModel

/// The requirements for every kind of shared directory, as checks that any test framework can run.
///
/// ```swift
/// let failures = try await DirectoryConformance.run { try MyDirectory() }
/// #expect(failures.isEmpty)
/// ```
///
/// Each check gets its own empty directory and does not clean it up. The checks do not cover
/// several devices, crashes or a full medium.
public enum DirectoryConformance {
  /// The check of one requirement.
  public struct Check: Sendable, CustomStringConvertible {
    /// The requirement, as a sentence.
    public let description: String
    private let body: @Sendable (any SharedDirectory) throws -> Void

    init(_ description: String, _ body: @escaping @Sendable (any SharedDirectory) throws -> Void) {
      self.description = description
      self.body = body
    }

    /// Throws unless `directory`, which is empty, meets the requirement.
    public func run(on directory: any SharedDirectory) throws {
      do {
        try body(directory)
      } catch let failure as Failure {
        throw Failure(check: description, reason: "\(failure.check): \(failure.reason)")
      } catch {
        throw Failure(check: description, reason: "unexpected error: \(error)")
      }
    }
  }

  /// A requirement that the directory does not meet.
  public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The requirement.
    public var check: String
    /// What the check found instead.
    public var reason: String
    /// The requirement and the reason.
    public var description: String { "\(check): \(reason)" }
  }

  /// The checks of all requirements.
  public static let checks: [Check] =
    publishing + listing + reading + transfers + removal + paths

  /// Runs every check on its own directory; returns the failures. Rethrows the errors of
  /// `makeDirectory`.
  public static func run(
    makeDirectory: () async throws -> any SharedDirectory
  ) async throws -> [Failure] {
    var failures: [Failure] = []
    for check in checks {
      let directory = try await makeDirectory()
      do {
        try check.run(on: directory)
      } catch let failure as Failure {
        failures.append(failure)
      }
    }
    return failures
  }
}

extension DirectoryConformance {
  static let client = ClientIdentifier(bits: Bits128(high: 0x0123_4567_89ab_cdef, low: 1))
  static let otherClient = ClientIdentifier(bits: Bits128(high: 0xfedc_ba98_7654_3210, low: 2))

  /// Throws unless `condition` holds.
  static func require(
    _ condition: Bool, _ reason: @autoclosure () -> String, file: String = #fileID,
    line: UInt = #line
  ) throws {
    if !condition { throw Failure(check: "\(file), line \(line)", reason: reason()) }
  }

  /// Runs `body`; throws unless it fails with `code`. Returns its error.
  @discardableResult
  static func requireError(
    _ code: DirectoryError.Code, file: String = #fileID, line: UInt = #line,
    _ body: () throws -> Void
  ) throws -> DirectoryError {
    do {
      try body()
    } catch let error as DirectoryError {
      try require(error.code == code, "\(code) was expected, not: \(error)", file: file, line: line)
      return error
    }
    throw Failure(
      check: "\(file), line \(line)", reason: "\(code) was expected, but the call succeeded")
  }

  /// Parses a path.
  static func path(_ text: String) throws -> RelativePath {
    guard let path = RelativePath(text) else {
      throw Failure(check: "path", reason: "\(text) is not a path")
    }
    return path
  }

  /// Returns random bytes that depend on `seed` alone.
  static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var random = SeededRandom(seed: seed)
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  /// Returns the names in a folder, in order.
  static func names(
    _ directory: any SharedDirectory, _ folder: RelativePath
  ) throws -> [String] {
    try directory.list(folder).map(\.name).sorted()
  }

  /// Throws if a client has unfinished files.
  static func requireNoLeftovers(
    _ directory: any SharedDirectory, of client: ClientIdentifier = client
  ) throws {
    do {
      let names = try names(directory, DirectoryLayout.temporary(of: client))
      try require(names.isEmpty, "left over: \(names)")
    } catch let error as DirectoryError where error.code == .notFound {
      return
    }
  }
}
