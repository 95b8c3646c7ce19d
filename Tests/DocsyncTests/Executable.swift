import Foundation
import Testing

/// The built `docsync`, run as a process of its own.
enum Executable {
  /// What a process said, and how it ended.
  struct Result {
    var status: Int32
    var wasSignalled: Bool
    var output: String
    var errors: String

    /// The object on standard output.
    func json(sourceLocation: SourceLocation = #_sourceLocation) throws -> [String: Any] {
      let value = try JSONSerialization.jsonObject(with: Data(output.utf8))
      return try #require(value as? [String: Any], sourceLocation: sourceLocation)
    }
  }

  /// Where it is.
  private static var url: URL { url(of: "docsync") }

  /// Where a program of the package is: beside the bundle of the tests.
  static func url(of program: String) -> URL {
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? Bundle.main
    let folder =
      bundle.bundlePath.hasSuffix(".xctest")
      ? bundle.bundleURL.deletingLastPathComponent() : bundle.bundleURL
    return folder.appendingPathComponent(program)
  }

  static var path: String { url.path }

  /// What it keeps beside the stores goes into the test's own folder.
  private static func environment(in folder: String) -> [String: String] {
    ProcessInfo.processInfo.environment.merging(["XDG_STATE_HOME": folder + "/.state"]) { $1 }
  }

  /// Starts it in a folder, after some lines of the shell if they are given: limits,
  /// and variables.
  static func start(
    _ arguments: [String], in folder: String, input: FileHandle = .nullDevice,
    output: Any = FileHandle.nullDevice, errors: Any = Pipe(), after shell: String? = nil
  ) throws -> Process {
    let process = Process()
    process.executableURL = shell == nil ? url : URL(fileURLWithPath: "/bin/sh")
    process.arguments =
      shell.map { ["-c", $0 + "\nexec \"$@\"", "sh", url.path] + arguments } ?? arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    process.environment = environment(in: folder)
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = input
    try process.run()
    return process
  }

  /// Runs it in a folder, after some lines of the shell if they are given, and waits for
  /// its end.
  static func run(
    _ arguments: [String], in folder: String, after shell: String? = nil
  ) throws -> Result {
    let (output, errors) = (Pipe(), Pipe())
    let process = try start(arguments, in: folder, output: output, errors: errors, after: shell)
    // What any command writes to standard error fits in the pipe.
    let text = output.fileHandleForReading.readDataToEndOfFile()
    let complaints = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus,
      wasSignalled: process.terminationReason == .uncaughtSignal,
      output: String(decoding: text, as: UTF8.self),
      errors: String(decoding: complaints, as: UTF8.self))
  }
}
