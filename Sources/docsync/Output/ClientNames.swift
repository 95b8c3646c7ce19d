import DocumentSync
import SyncModel

/// The names of clients: the names that they gave themselves, and enough of the
/// identifier to tell them apart.
struct ClientNames {
  private static let length = 6
  private let own: ClientIdentifier?
  private let names: [ClientIdentifier: String]

  init(own: ClientIdentifier? = nil, names: [ClientIdentifier: String] = [:]) {
    self.own = own
    self.names = names
  }

  /// The names from the directory; if it cannot be read, only this device's name.
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
      // The identifiers suffice: names only make them easier to read.
    }
    self.init(own: binding.client, names: names)
  }

  /// The first characters of an identifier.
  static func short(_ client: ClientIdentifier) -> String {
    String(client.description.prefix(length))
  }

  /// The name that the client gave itself; `nil` if it has not arrived.
  func name(_ client: ClientIdentifier) -> String? { names[client].map(printable) }

  /// The name and the first characters of the identifier.
  func label(_ client: ClientIdentifier) -> String {
    let short = Self.short(client)
    return name(client).map { "\($0) (\(short))" } ?? short
  }

  /// The text that names a change set in “docsync show”.
  func reference(_ client: ClientIdentifier, _ number: UInt64) -> String {
    client == own ? "\(number)" : "\(Self.short(client))/\(number)"
  }
}
