import ArgumentParser

/// The command.
@main
struct Benchmarks: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Benchmarks",
    abstract: "Compares capture, export and apply with plain SQL and the session extension.",
    subcommands: [Compare.self, MemoryProbe.self], defaultSubcommand: Compare.self)
}
