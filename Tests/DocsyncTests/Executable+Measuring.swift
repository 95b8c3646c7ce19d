import Foundation

extension Executable {
  /// What a process said, and what it took.
  struct Measured {
    var result: Result
    /// The most memory that it had at one time, in bytes.
    var peak: Int
    /// How long it kept processors busy, in seconds: what else the machine does is not counted.
    var seconds: Double
    /// Whether it was ended since it took too long.
    var isTooSlow: Bool
  }

  /// The address space that a process may take, in KiB: threads reserve some hundreds of MB that
  /// they never touch. Who takes more ends at once, and does not take the machine along.
  private static let addressSpace = 2 << 20

  /// Runs it in a folder, and looks at its memory until it ends.
  ///
  /// What it has had at most is what the system says of it. It is ended after so many seconds of
  /// a processor's time, and if it uses none for five minutes: a process that waits for a processor
  /// of a busy machine gets one now and then, and one that sleeps does not.
  static func measure(
    _ arguments: [String], in folder: String, atMost limit: Double
  ) throws -> Measured {
    let files = ["output", "errors"].map { folder + "/.\($0)-" + UUID().uuidString }
    let handles = try files.map { path in
      try Data().write(to: URL(fileURLWithPath: path))
      return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    }
    let process = try start(
      arguments, in: folder, output: handles[0], errors: handles[1],
      // Each arena reserves 64 MB or more, and their number would depend on how many threads met.
      after: "ulimit -v \(addressSpace)\nexport MALLOC_ARENA_MAX=4")
    var peak = 0
    var seconds = 0.0
    var isTooSlow = false
    var lastProgress = ContinuousClock.now
    while process.isRunning {
      peak = max(peak, highWater(of: process.processIdentifier))
      let used = processorTime(of: process.processIdentifier)
      if used > seconds {
        seconds = used
        lastProgress = .now
      }
      if !isTooSlow, seconds > limit || lastProgress.duration(to: .now) > .seconds(300) {
        isTooSlow = true
        process.terminate()
      }
      usleep(2_000)
    }
    process.waitUntilExit()
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
      peak: peak, seconds: seconds, isTooSlow: isTooSlow)
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
  /// How long a process has kept processors busy, in seconds; 0 once it has ended.
  private static func processorTime(of process: Int32) -> Double {
    do {
      let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
      // The name, in parentheses, may hold anything. Then the 14th and 15th values count.
      guard let end = text.lastIndex(of: ")") else { return 0 }
      let values = text[end...].split(separator: " ").dropFirst(12).prefix(2)
      return values.compactMap { Double($0) }.reduce(0, +) / Double(sysconf(Int32(_SC_CLK_TCK)))
    } catch {
      return 0
    }
  }
}
