import Foundation

/// A sample app: notes that several devices share through a folder.
///
///     NotesSample                        two devices as two processes play a story and check it
///     NotesSample FOLDER DEVICE          one device, with commands on standard input
///
/// The second form is the app. It shows the notes whenever this device or another one has changed them.
@main
enum NotesSample {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    // Writing to a device that has ended is an error, and not the end of this process.
    signal(SIGPIPE, SIG_IGN)
    do {
      switch arguments.count {
      case 0: try await NotesStory().play()
      case 2: try await NotesApp(folder: arguments[0], device: arguments[1]).run()
      default: end("Usage: NotesSample [FOLDER DEVICE]", status: 2)
      }
    } catch {
      end("\(error)", status: 1)
    }
  }

  private static func end(_ message: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(status)
  }
}
