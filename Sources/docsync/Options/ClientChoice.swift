import DocumentSync
import SyncModel

/// A device as the user names it: by its identifier, the beginning of its identifier, or its name.
enum ClientChoice {
  /// Returns the one of `clients` that `text` names. Throws `noSuchClient` and `ambiguousClient`.
  static func choose(
    _ text: String, among clients: [ClientDescription], store: String
  ) throws -> ClientDescription {
    let exact = clients.filter { $0.client.description == text }
    let named = clients.filter { $0.description == text }
    let beginning = clients.filter {
      !text.isEmpty && $0.client.description.hasPrefix(text.lowercased())
    }
    let found = [exact, named, beginning].first { !$0.isEmpty } ?? []
    guard let only = found.first else {
      throw Failure(
        code: "noSuchClient", message: "There is no device “\(text)”.", path: store,
        remedy: "Name a device that “docsync clients \(shellWord(store))” lists.")
    }
    guard found.count == 1 else {
      throw Failure(
        code: "ambiguousClient",
        message: "“\(text)” is the name or the beginning of several devices.", path: store,
        remedy: "Give more characters of the identifier. "
          + "“docsync clients \(shellWord(store))” lists them.")
    }
    return only
  }
}
