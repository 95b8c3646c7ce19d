import ArgumentParser

/// The answer to a command that does not exist: without it, the parser complains about the options
/// of the command that was meant.
enum Misspelling {
  /// Returns the first word if it should be a command and is none.
  static func unknownCommand(in arguments: [String]) -> String? {
    guard let word = arguments.first, !word.hasPrefix("-"), word != "help", !names.contains(word)
    else { return nil }
    return word
  }

  static func failure(_ word: String) -> Failure {
    let meant = meant(word).map { " Did you mean “\($0)”?" } ?? ""
    return Failure(
      code: "usage", message: "There is no command “\(word)”.\(meant)", path: nil,
      remedy: "List the commands with “docsync --help”.", status: .usage)
  }

  private static let names = Docsync.configuration.subcommands.map { $0._commandName }

  /// The command for a word of another program.
  private static let synonyms = [
    "push": "sync", "pull": "sync", "update": "sync", "add": "init", "create": "init",
    "clone": "join", "diff": "show", "history": "log", "devices": "clients", "list": "documents",
    "check": "verify", "revert": "undo", "remove": "leave", "delete": "delete-document",
  ]

  /// Returns the command that the user probably meant.
  private static func meant(_ word: String) -> String? {
    if let synonym = synonyms[word] { return synonym }
    if word.count > 1, let longer = names.first(where: { $0.hasPrefix(word) }) { return longer }
    let distances = names.map { (name: $0, distance: distance(word, $0)) }
    return distances.filter { $0.distance <= 2 && $0.distance < $0.name.count / 2 + 1 }
      .min { $0.distance < $1.distance }?.name
  }

  /// Returns how many letters have to be replaced, inserted, removed or exchanged with the next one
  /// to get from one word to the other.
  private static func distance(_ first: String, _ second: String) -> Int {
    let (a, b) = (Array(first), Array(second))
    var rows = [Array(0...b.count)]
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var best = min(rows[i][j] + (a[i] == b[j] ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
          best = min(best, rows[i - 1][j - 1] + 1)
        }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[a.count][b.count]
  }
}
