import ArgumentParser
import DocumentSync
import Foundation

#if os(Linux)
  import CMalloc
#endif

/// The main program: parses the command line, runs the verb and ends the process with its status.
@main
enum Main {
  static func main() async {
    giveBackLargeBlocks()
    // Writing to a pipe that nothing reads fails instead, so that the command can tidy up.
    signal(SIGPIPE, SIG_IGN)
    let arguments = Array(CommandLine.arguments.dropFirst())
    var console = Console(isJSON: arguments.contains("--json"))
    if let word = Misspelling.unknownCommand(in: arguments) {
      console.show(Misspelling.failure(word))
      exit(ExitStatus.usage.rawValue)
    }
    do {
      var command = try Docsync.parseAsRoot(arguments)
      guard let verb = command as? any Verb else {
        try command.run()
        exit(ExitStatus.done.rawValue)
      }
      console.isJSON = verb.output.json
      console.hasLines = type(of: verb).writesLines
      exit(await run(verb, console).rawValue)
    } catch {
      exit(explain(error, console).rawValue)
    }
  }

  /// Makes glibc return blocks of a MiB and more to the system as soon as they are freed.
  ///
  /// Otherwise glibc raises that limit, up to 32 MiB, whenever the program frees such a block, and
  /// does not return freed blocks: reading a few large change sets took a third more memory.
  private static func giveBackLargeBlocks() {
    #if os(Linux)
      _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
    #endif
  }

  private static func run(_ verb: any Verb, _ console: Console) async -> ExitStatus {
    // The command starts only when signals are received: an earlier one would end the process in
    // the midst of its work.
    let start = AsyncStream<Void>.makeStream()
    let task = Task {
      for await _ in start.stream { break }
      return try await verb.perform(console)
    }
    let interruption = Interruption {
      // Said first: the command says something of its own as soon as it is cancelled.
      ProgressBar.leaveLine()
      console.note([
        "docsync: stopping; press Ctrl-C again to stop at once. Your data is safe."
      ])
      task.cancel()
    }
    start.continuation.finish()
    switch await task.result {
    case .success(let outcome):
      console.show(outcome)
      return outcome.status
    case .failure(let error):
      let failure = Failure(error).at(verb.commandPlace)
      console.show(failure)
      if failure.code == SyncError.Code.cancelled.rawValue { interruption.endProcess() }
      return failure.status
    }
  }

  /// Shows the help that the user asked for, or the mistake in the command
  /// line.
  private static func explain(_ error: any Error, _ console: Console) -> ExitStatus {
    let message = Docsync.fullMessage(for: error)
    guard Docsync.exitCode(for: error) != .success else {
      // Help, the version and scripts for completion are text.
      Console(isJSON: false).say(message.components(separatedBy: "\n"))
      return .done
    }
    let verb = CommandLine.arguments.dropFirst().first { !$0.hasPrefix("-") }
    console.show(
      Failure(
        code: "usage", message: Docsync.message(for: error), path: nil,
        remedy: "See what is possible with “docsync \(verb.map { $0 + " " } ?? "")--help”.",
        status: .usage),
      lines: message.components(separatedBy: "\n"))
    return .usage
  }
}
