import Foundation

/// The most memory that this process has had resident, from
/// `/proc/self/status`. Only Linux tells.
enum PeakMemory {
  /// Forgets the peak so far; gives what is resident now, in bytes.
  ///
  /// Where the kernel does not let the peak be forgotten, the peak so far is
  /// given, so that a difference can only be too small by what was there
  /// before.
  static func reset() throws -> Int {
    if let file = FileHandle(forWritingAtPath: "/proc/self/clear_refs") {
      try file.write(contentsOf: Data("5".utf8))
      try file.close()
    }
    return try current()
  }

  /// The peak since the last reset, in bytes.
  static func current() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    for line in status.split(separator: "\n") where line.hasPrefix("VmHWM:") {
      if let kilobytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({
        Int($0)
      }) {
        return kilobytes << 10
      }
    }
    throw CocoaError(.fileReadCorruptFile)
  }
}
