import ArgumentParser
import Foundation

/// `docsync demo`
struct Demo: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Show three devices editing, conflicting and agreeing.",
    discussion: """
      Works in a new temporary directory, with databases that are edited by plain SQL. Fails \
      if the devices do not show the same in the end.
      """)

  @Flag(help: "Keep the databases and the shared directory, to look around.")
  var keep = false

  @OptionGroup var output: OutputOptions

  /// The output with `--json`.
  struct Result: Encodable, Sendable {
    /// The directory of the demo; `nil` if the demo has removed it.
    var directory: String?
    var devices: [Device]
    var isConverged: Bool
  }

  /// The state of a device at the end.
  struct Device: Encodable, Sendable {
    var clientName: String
    var store: String
    var visible: String
    var logical: String
    var rowCount: Int
    var notes: [Note]
  }

  /// A note of a device.
  struct Note: Encodable, Sendable {
    /// The integer key of the row on the device.
    var key: Int64
    var title: String
    var tags: [String]
  }

  func perform(_ console: Console) async throws -> Outcome {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("docsync-demo-" + UUID().uuidString.prefix(8).lowercased()).path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    // State that is not in the stores goes to the demo's folder too, which is removed at the end.
    setenv("XDG_STATE_HOME", folder + "/.state", 1)
    if !keep {
      Console.beforeEnding {
        do {
          try FileManager.default.removeItem(atPath: folder)
        } catch {
          console.note(["docsync: The folder of the demo could not be removed: \(folder)"])
        }
      }
    }
    var story = DemoStory(folder: folder, isKept: keep, console: console)
    let devices: [Device]
    do {
      devices = try await story.tell()
    } catch {
      if !keep { try FileManager.default.removeItem(atPath: folder) }
      throw error
    }
    let isConverged = Set(devices.map(\.visible)).count == 1
    // If the devices differ, the files stay for a developer to examine.
    let isKept = keep || !isConverged
    if !isKept { try FileManager.default.removeItem(atPath: folder) }
    var lines = [
      isConverged ? "   Equal." : "   The digests differ: this is a defect of docsync."
    ]
    if isKept {
      lines += [
        "", "Kept: \(folder)",
        "Look around: docsync status \(shellWord(folder + "/laptop/notes.db"))",
      ]
    }
    lines += [
      "", "With a database of your own:",
      "  docsync init notes.db --directory ~/Dropbox/DocumentSync",
    ]
    return Outcome(
      json: Result(
        directory: isKept ? folder : nil, devices: devices, isConverged: isConverged),
      lines: lines, status: isConverged ? .done : .failed)
  }
}
