import Dispatch
import Foundation

/// Two devices, each a process of its own, that edit the same notes. Each step waits until both show what
/// they should.
struct NotesStory {
  func play() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "NotesSample-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder.appending(path: "Shared"), withIntermediateDirectories: true)
    defer {
      do { try FileManager.default.removeItem(at: folder) } catch {
        print("\(folder.path) could not be removed: \(error)")
      }
    }
    let laptop = try Device("laptop", in: folder.path)
    try await laptop.tell("add Buy milk", until: "notes: Buy milk")
    let phone = try Device("phone", in: folder.path)
    try await phone.wait(for: "notes: Buy milk")
    try await phone.tell("add Call Ada", until: "notes: Buy milk | Call Ada")
    try await laptop.wait(for: "notes: Buy milk | Call Ada")

    // Both edit one note without knowing of each other.
    try await laptop.tell("offline", until: "offline")
    try await laptop.tell("edit Buy Buy oat milk", until: "notes: Buy oat milk | Call Ada")
    try await phone.tell("edit Buy Buy soy milk", until: "notes: Buy soy milk | Call Ada")
    try await Task.sleep(for: .seconds(1))
    try await laptop.tell(
      "online", until: "question: mine “Buy oat milk” or theirs “Buy soy milk”?")
    try await laptop.tell("answer mine", until: "answered")
    try await phone.wait(for: "notes: Buy oat milk | Call Ada")

    try await phone.tell("delete Call", until: "notes: Buy oat milk")
    try await laptop.wait(for: "notes: Buy oat milk")
    for device in [laptop, phone] { try await device.quit() }
    print("Both devices show the same notes.")
  }

  /// A process that plays a device, and what it has printed.
  private final class Device {
    /// The longest time that a step waits.
    private static let limit = DispatchTimeInterval.seconds(60)

    private let name: String
    private let process = Process()
    private let input = Pipe()
    private let lines: AsyncStream<String>

    init(_ name: String, in folder: String) throws {
      self.name = name
      process.executableURL = Bundle.main.executableURL
      process.arguments = [folder, name]
      process.standardInput = input
      let output = Pipe()
      process.standardOutput = output
      let (lines, continuation) = AsyncStream.makeStream(of: String.self)
      self.lines = lines
      try process.run()
      Thread {
        var rest = Data()
        while true {
          let part = output.fileHandleForReading.availableData
          if part.isEmpty { break }
          rest += part
          while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
            rest = Data(rest[(end + 1)...])
          }
        }
        continuation.finish()
      }.start()
    }

    /// Types a command.
    func tell(_ command: String, until line: String) async throws {
      print("> \(name): \(command)")
      try input.fileHandleForWriting.write(contentsOf: Data((command + "\n").utf8))
      try await wait(for: line)
    }

    /// Prints what the device prints, until it prints a line.
    func wait(for line: String) async throws {
      let late = DispatchWorkItem { [process, name] in
        print("\(name) has not printed “\(line)” in time.")
        process.terminate()
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + Self.limit, execute: late)
      defer { late.cancel() }
      for await next in lines {
        print(next)
        if next == "\(name): \(line)" { return }
      }
      throw Failure(description: "\(name) ended without printing “\(line)”.")
    }

    /// Ends the device.
    func quit() async throws {
      try input.fileHandleForWriting.write(contentsOf: Data("quit\n".utf8))
      try input.fileHandleForWriting.close()
      for await next in lines { print(next) }
      process.waitUntilExit()
      guard process.terminationStatus == 0 else {
        throw Failure(description: "\(name) ended with \(process.terminationStatus).")
      }
    }
  }

  private struct Failure: Error, CustomStringConvertible { let description: String }
}
