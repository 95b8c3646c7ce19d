import ArgumentParser
import SyncStore

/// The command tree.
struct Docsync: ParsableCommand {
  /// The version of the command and of the library. It ends in “-dev” until it is released.
  static let version = "0.1.0-dev"

  static let configuration = CommandConfiguration(
    commandName: "docsync",
    abstract: "Keeps one SQLite database the same on many devices, through a shared directory.",
    discussion: """
      One device puts its database under sync with “docsync init”, the others get it with \
      “docsync join”. From then on “docsync sync” sends the edits of a device and applies \
      those of the others. Any program may read and write the database.

      EXIT CODES
      \(ExitStatus.table)
      """,
    version: """
      docsync \(version)
      format of databases \(LocalStore.format), SQLite \(LocalStore.sqliteVersion)
      """,
    groupedSubcommands: groups.map {
      CommandGroup(name: $0.name.uppercased(), subcommands: $0.verbs)
    })

  /// The commands, by what they are for.
  private static let groups: [(name: String, verbs: [any Verb.Type])] = [
    ("Begin", [Init.self, Join.self, Demo.self]),
    (
      "Every day",
      [
        Sync.self, Watch.self, Status.self, Pending.self, Log.self, Show.self, Undo.self,
        Conflicts.self,
      ]
    ),
    ("Look", [Documents.self, Clients.self, Digest.self, Schema.self, Verify.self]),
    ("Tidy up", [Upload.self, Vacuum.self, Retire.self, RemoveClient.self, Reset.self]),
    ("End", [Leave.self, DeleteDocument.self, RemoveAll.self]),
  ]

  /// Prints the short help: docsync without a command.
  func run() {
    let table = alignedLines(
      Self.groups.map { [$0.name, $0.verbs.map { $0._commandName }.joined(separator: ", ")] },
      indent: 2)
    Console(isJSON: false).say(
      [Self.configuration.abstract, ""] + table + [
        "", "On the first device, on the others, and then on each of them:",
        "  docsync init notes.db --directory ~/Dropbox/DocumentSync",
        "  docsync join notes.db --directory ~/Dropbox/DocumentSync",
        "  docsync sync notes.db", "",
        "“docsync --help” describes the commands, “docsync COMMAND --help” one of them.",
      ])
  }
}
