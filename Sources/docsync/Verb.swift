import ArgumentParser

/// A command: one file each, under Verbs.
protocol Verb: ParsableCommand, Sendable {
  /// How the result is shown.
  var output: OutputOptions { get }

  /// Does it. Whatever is thrown is shown as a ``Failure``.
  func perform(_ console: Console) async throws -> Outcome
}

/// What a command did.
struct Outcome: Sendable {
  /// The object for `--json`.
  var json: any Encodable & Sendable
  /// The text for people, without the last line's end.
  var text: String
  /// What the shell is told.
  var status = ExitStatus.done
}

/// The options that every command has.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print one JSON object on standard output, also for errors.")
  var json = false
}
