import ArgumentParser

/// A command: one file each, under Verbs.
protocol Verb: ParsableCommand, Sendable {
  /// How the result is shown.
  var output: OutputOptions { get }

  /// Runs the command. An error is shown as a ``Failure``.
  func perform(_ console: Console) async throws -> Outcome
}

/// The result of a command.
struct Outcome: Sendable {
  /// The object for `--json`.
  var json: any Encodable & Sendable
  /// The text for people, without a newline at the end.
  var text: String
  /// The exit code.
  var status = ExitStatus.done
}

/// The options that every command has.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print one JSON object on standard output, also for errors.")
  var json = false
}
