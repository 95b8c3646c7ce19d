import DocumentSync
import SyncModel

/// The names of clients for people: the names that they gave themselves, with the first characters
/// of their identifiers.
struct ClientNames {
  private static let length = 6
  private let own: ClientIdentifier?
  private let names: [ClientIdentifier: String]

  init(own: ClientIdentifier? = nil, names: [ClientIdentifier: String] = [:]) {
    self.own = own
    self.names = names
  }

  /// Reads the names from the directory. If that fails, it knows only this device's name.
  init(_ manager: DocumentSyncManager) async {
    let binding = manager.binding
    var names = [binding.client: binding.clientDescription]
    do {
      let application = ApplicationSyncManager(
        directory: manager.directory, environment: manager.environment)
      for client in try await application.listClients() where !client.description.isEmpty {
        names[client.client] = client.description
      }
    } catch {
      // The identifiers suffice: names only help people.
    }
    self.init(own: binding.client, names: names)
  }

  /// Returns the first characters of an identifier.
  static func short(_ client: ClientIdentifier) -> String {
    String(client.description.prefix(length))
  }

  /// Returns the name that the client gave itself; `nil` if it has not arrived.
  func name(_ client: ClientIdentifier) -> String? { names[client].map(printable) }

  /// Returns the name and the first characters of the identifier.
  func label(_ client: ClientIdentifier) -> String {
    let short = Self.short(client)
    return name(client).map { "\($0) (\(short))" } ?? short
  }

  /// Returns the argument that names a change set for “docsync show”.
  func reference(_ client: ClientIdentifier, _ number: UInt64) -> String {
    client == own ? "\(number)" : "\(Self.short(client))/\(number)"
  }
}
