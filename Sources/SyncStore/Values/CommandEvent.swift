import SyncModel

/// A command of another client that the application has not acknowledged.
public struct CommandEvent: Hashable, Sendable {
  /// The author.
  public var client: ClientIdentifier
  /// The number among the author's commands.
  public var number: UInt64
  /// The command's name.
  public var name: String
  /// The data that the command carries.
  public var payload: [UInt8]

  /// Creates an event from its parts.
  package init(client: ClientIdentifier, number: UInt64, name: String, payload: [UInt8]) {
    self.client = client
    self.number = number
    self.name = name
    self.payload = payload
  }
}
