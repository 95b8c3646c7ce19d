import Foundation
import Testing

/// The sample app: two processes, each with an engine and a list that GRDB observes.
@Suite struct NotesSampleTests {
  @Test func bothDevicesOfTheStoryShowTheSame() throws {
    let process = Process()
    process.executableURL = Executable.url(of: "NotesSample")
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: data, as: UTF8.self)
    #expect(process.terminationStatus == 0, "\(text)")
    #expect(text.hasSuffix("Both devices show the same notes.\n"), "\(text)")
    #expect(text.contains("laptop: question: mine “Buy oat milk” or theirs “Buy soy milk”?"))
  }
}
