import ArgumentParser

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
    version: "docsync \(version)",
    subcommands: [
      Init.self, Join.self, Sync.self, Status.self, Log.self, Show.self, Digest.self,
      Conflicts.self,
      Documents.self, Clients.self, Retire.self, Reset.self, Upload.self, Vacuum.self,
      Verify.self, Leave.self, RemoveClient.self, DeleteDocument.self, RemoveAll.self, Demo.self,
    ])
}
