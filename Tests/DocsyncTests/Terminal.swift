import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A terminal with the built `docsync` on it: its input and its errors. What
/// it prints goes elsewhere.
enum Terminal {
  /// Runs the command, after some lines of the shell if they are given; when it asks, `answer` is
  /// typed.
  static func run(
    _ arguments: [String], answer: String, in folder: String, columns: UInt16 = 80,
    after shell: String? = nil
  ) throws -> Executable.Result {
    var master: Int32 = -1
    var slave: Int32 = -1
    var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    try #require(openpty(&master, &slave, nil, nil, &size) == 0)
    defer { close(master) }
    let terminal = FileHandle(fileDescriptor: slave, closeOnDealloc: false)
    let output = Pipe()
    let process: Process
    do {
      process = try Executable.start(
        arguments, in: folder, input: terminal, output: output, errors: terminal, after: shell)
      close(slave)
    } catch {
      close(slave)
      throw error
    }
    let shown = try converse(master, answer: answer)
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Executable.Result(
      status: process.terminationStatus,
      wasSignalled: process.terminationReason == .uncaughtSignal,
      output: String(decoding: text, as: UTF8.self),
      errors: shown)
  }

  /// Types the answer when a question is shown; returns the output until
  /// no process has the terminal any more.
  private static func converse(_ master: Int32, answer: String) throws -> String {
    var shown: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    var hasAnswered = false
    while true {
      let count = read(master, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      // On Linux the end is an error.
      guard count > 0 else { break }
      shown += buffer.prefix(count)
      guard !hasAnswered, String(decoding: shown, as: UTF8.self).hasSuffix("to go on: ") else {
        continue
      }
      hasAnswered = true
      let typed = Array(answer.utf8)
      try #require(write(master, typed, typed.count) == typed.count)
    }
    return String(decoding: shown, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "\n")
  }
}
