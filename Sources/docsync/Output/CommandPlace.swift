/// What the commands in remedies name. What is not known is in capital letters, as in the help.
struct CommandPlace: Hashable, Sendable {
  var store: String?
  var directory: String?
  var document: String?
  /// Whether the command is about a database that is under sync, and finds the directory by it.
  var isUnderSync = false
  /// Whether the command has the option --wait.
  var canWait = false

  /// Another device, which has other paths.
  static let elsewhere = CommandPlace()

  /// The database as a word of the command line.
  var storeWord: String { store.map(shellWord) ?? "STORE" }

  /// The shared directory as a word of the command line.
  var directoryWord: String { directory.map(shellWord) ?? "DIR" }

  /// The words that name the database, the directory, and the document if the user has named one.
  var setUpWords: String {
    "\(storeWord) --directory \(directoryWord)"
      + (document.map { " --document \(shellWord($0))" } ?? "")
  }
}
