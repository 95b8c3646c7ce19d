import DocumentSync

/// A change set or a command that cannot be applied yet, as `sync` prints it.
struct WaitJSON: Encodable, Sendable {
  var client: String
  var number: UInt64
  /// Whether `number` is that of a command.
  var isCommand: Bool
  var reason: String
  var message: String
  var path: String?

  init(_ wait: SyncReport.Wait) {
    client = wait.client.description
    number = wait.number
    isCommand = wait.isCommand
    reason = wait.reason.rawValue
    message = wait.message
    path = wait.path
  }
}
