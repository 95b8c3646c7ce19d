import DocumentSync
import SyncStore

/// The reason why a history failed.
package struct FleetFailure: Hashable, Sendable, Error {
  /// The kind of violation. A script is shrunk as long as this stays the same.
  package enum Kind: Hashable, Sendable {
    /// A device shows other rows than the oracle.
    case oracle
    /// Devices that have everything differ in what they show.
    case visible
    /// Devices that have everything differ in the state beneath.
    case logical
    /// `integrity_check` reports a problem, such as a violated constraint.
    case integrity
    /// `foreign_key_check` reports a problem.
    case foreignKeys
    /// Bookkeeping does not agree with itself or with the tables.
    case bookkeeping
    /// An accepted edit is in no change set.
    case lost
    /// A published file has changed.
    case changedFile
    /// The devices never reach a state in which they have nothing to do.
    case restless
    /// A synchronization with nothing to do has written something.
    case wroteWhenIdle
    /// A change set waits, or a row is parked, without a reported reason.
    case unexplained
    /// A statement gives another result than without our triggers.
    case twin
    /// The product threw an error with this code.
    case error(String)
  }

  /// The kind of violation.
  package var kind: Kind
  /// The rows, values or files that differ, as text for people.
  package var details: String
  /// The index of the step after which it was found; `nil` for the end.
  var step: Int?

  init(_ kind: Kind, _ details: String) {
    self.kind = kind
    self.details = details
  }

  /// The failure for an error that the product threw.
  init(throwing error: any Error, _ prefix: String = "") {
    let code =
      switch error {
      case let error as SyncError: error.code.rawValue
      case let error as StoreError: "\(error.code)"
      default: "\(type(of: error))"
      }
    self.init(.error(code), prefix + "\(error)")
  }
}
