import SyncDirectory
import SyncModel

extension GenerationVerifier {
  /// Reads every command file, and notes its faults and its number.
  func readCommands(_ facts: inout GenerationFacts) throws {
    for (client, listed) in names.commands.sorted(by: { $0.key < $1.key }) {
      var found = NumberedFacts()
      for name in listed.sorted() {
        found.claims[name.number, default: []].append(
          try read(name, at: facts.layout.path(of: name, by: client), by: client, facts))
      }
      facts.commands[client] = found
    }
  }

  private func read(
    _ name: CommandName, at path: RelativePath, by client: ClientIdentifier,
    _ facts: GenerationFacts
  ) throws -> NumberedFacts.Claim {
    let whole = try files.json(path, name.hash, as: SyncCommandFile.self, .syncCommand)
    guard let whole else { return NumberedFacts.Claim(path: path) }
    let command = whole.content
    guard
      facts.owns(
        root: command.root, document: command.document, generation: command.generation),
      command.client == client, command.number == name.number
    else {
      files.note(
        .misplaced, path, "The command belongs to another document, client or number.",
        detail: "root \(command.root), document \(command.document), generation "
          + "\(command.generation), client \(command.client), number \(command.number)")
      return NumberedFacts.Claim(path: path)
    }
    if command.command.isUnknown {
      files.note(
        .newerVersion, path, "This version does not know the kind of the command.",
        detail: command.command.kind)
    } else if !command.command.isWellFormed {
      files.note(
        .malformed, path, "The command lacks a field that its kind needs.",
        detail: command.command.kind)
    }
    return NumberedFacts.Claim(path: path, hash: whole.hash, previous: command.previous)
  }

  /// Checks the commands against one another.
  func checkCommands(_ facts: GenerationFacts) {
    let layout = facts.layout
    for (client, found) in facts.commands {
      NumberedRules(
        kinds: .commands, client: client, facts: found, folder: layout.syncCommands(of: client),
        path: { number, hash in
          layout.path(of: CommandName(number: number, hash: HashFragment(hash)), by: client)
        }
      ).run(files)
    }
  }
}
