import SyncModel

/// `<client>.removed.<hash>.json`, in ClientDevices: another device has removed the client. The
/// hash is that of the file, so that two devices that remove it at once write two files.
package struct ClientRemovalName: DirectoryName {
  /// The client that was removed.
  package var client: ClientIdentifier
  /// The fragment of the file's hash.
  package var hash: HashFragment

  /// Creates a name from its parts.
  package init(client: ClientIdentifier, hash: HashFragment) {
    self.client = client
    self.hash = hash
  }

  /// The name.
  package var description: String { "\(client).removed.\(hash).json" }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard let parts = description.nameParts(4), parts[1] == "removed", parts[3] == "json",
      let client = ClientIdentifier(String(parts[0])), let hash = HashFragment(String(parts[2]))
    else { return nil }
    self.init(client: client, hash: hash)
  }
}

/// A name of ours in ClientDevices.
package enum ClientEntryName: DirectoryName {
  /// A client's description of itself.
  case device(ClientDeviceName)
  /// The removal of a client.
  case removal(ClientRemovalName)

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    if let name = ClientDeviceName(description) {
      self = .device(name)
    } else if let name = ClientRemovalName(description) {
      self = .removal(name)
    } else {
      return nil
    }
  }

  /// The name.
  package var description: String {
    switch self {
    case .device(let name): name.description
    case .removal(let name): name.description
    }
  }
}
