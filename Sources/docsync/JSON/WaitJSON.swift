import DocumentSync
import SyncModel

/// A change set or a command that cannot be applied yet, as printed.
struct WaitJSON: Encodable, Sendable {
  var client: String
  var number: UInt64
  /// Whether `number` is that of a command.
  var isCommand: Bool
  var reason: String
  var message: String
  var path: String?
  /// The numbers of the change sets that must be applied before, by client.
  var missing: [String: UInt64]?

  init(_ wait: SyncReport.Wait, missing: [ClientIdentifier: UInt64]? = nil) {
    self.missing = missing.map { missing in
      Dictionary(uniqueKeysWithValues: missing.map { ($0.key.description, $0.value) })
    }
    client = wait.client.description
    number = wait.number
    isCommand = wait.isCommand
    reason = wait.reason.rawValue
    message = wait.message
    path = wait.path
  }
}
