import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Makes a folder read-only, for root too: permission bits do not stop root,
/// but the immutable attribute does.
enum ReadOnlyFolder {
  private static var isRoot: Bool { geteuid() == 0 }

  /// Whether this machine can do it.
  static let isPossible: Bool = {
    guard isRoot else { return true }
    // That the command does not start, on a machine with too many processes, is no answer.
    for _ in 0..<50 {
      do {
        let folder = try TemporaryFolder()
        guard try changeAttributes("+i", folder.path) else { return false }
        return try changeAttributes("-i", folder.path)
      } catch {
        usleep(200_000)
      }
    }
    return false
  }()

  /// Runs `body` while `path` is read-only.
  static func with(_ path: String, _ body: () throws -> Void) throws {
    try set(true, path)
    do {
      try body()
    } catch {
      try set(false, path)
      throw error
    }
    try set(false, path)
  }

  private static func set(_ isReadOnly: Bool, _ path: String) throws {
    if isRoot {
      try #require(try changeAttributes(isReadOnly ? "+i" : "-i", path))
    } else {
      try #require(chmod(path, isReadOnly ? 0o555 : 0o755) == 0)
    }
  }

  private static func changeAttributes(_ change: String, _ path: String) throws -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["chattr", change, path]
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus == 0
  }
}
