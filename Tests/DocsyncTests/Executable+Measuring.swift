import Foundation

extension Executable {
  /// What a process said, and what it took.
  struct Measured {
    var result: Result
    /// The most memory that it had at one time, in bytes.
    var peak: Int
    /// How long it ran.
    var seconds: Double
    /// Whether it was ended since it took too long.
    var isTooSlow: Bool
  }

  /// The address space that a process may take, in KiB: threads reserve some hundreds of MB that
  /// they never touch. Who takes more ends at once, and does not take the machine along.
  private static let addressSpace = 2 << 20

  /// Runs it in a folder, and looks at its memory until it ends.
  ///
  /// What it has had at most is what the system says of it. It is ended after so many seconds.
  static func measure(
    _ arguments: [String], in folder: String, atMost limit: Double
  ) throws -> Measured {
    let files = ["output", "errors"].map { folder + "/.\($0)-" + UUID().uuidString }
    let handles = try files.map { path in
      FileManager.default.createFile(atPath: path, contents: nil)
      return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    }
    let begin = ContinuousClock.now
    let process = try start(
      arguments, in: folder, output: handles[0], errors: handles[1], addressSpace: addressSpace)
    var peak = 0
    var isTooSlow = false
    while process.isRunning {
      peak = max(peak, highWater(of: process.processIdentifier))
      if !isTooSlow, begin.duration(to: .now) > .seconds(limit) {
        isTooSlow = true
        process.terminate()
      }
      usleep(2_000)
    }
    process.waitUntilExit()
    let elapsed = begin.duration(to: .now)
    for handle in handles { try handle.close() }
    let texts = try files.map { path in
      let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
      try FileManager.default.removeItem(atPath: path)
      return text
    }
    return Measured(
      result: Result(
        status: process.terminationStatus,
        wasSignalled: process.terminationReason == .uncaughtSignal, output: texts[0],
        errors: texts[1]),
      peak: peak, seconds: elapsed / .seconds(1), isTooSlow: isTooSlow)
  }

  /// The most memory that a process has had, by what the system says of it; 0 once it has ended.
  private static func highWater(of process: Int32) -> Int {
    do {
      let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
      guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
        let number = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
      else { return 0 }
      return number << 10
    } catch {
      return 0
    }
  }
}
