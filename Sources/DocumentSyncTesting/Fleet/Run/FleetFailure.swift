import DocumentSync
import SyncStore

/// How a history went wrong.
public struct FleetFailure: Hashable, Sendable, Error {
  /// What was violated. A script is shrunk as long as this stays the same.
  public enum Kind: Hashable, Sendable {
    /// A device shows other rows than the oracle.
    case oracle
    /// Devices that have everything differ in what they show.
    case visible
    /// Devices that have everything differ in the state beneath.
    case logical
    /// `integrity_check` finds something, a violated constraint among it.
    case integrity
    /// `foreign_key_check` finds something.
    case foreignKeys
    /// Bookkeeping does not agree with itself or with the tables.
    case bookkeeping
    /// An accepted edit is in no change set.
    case lost
    /// A published file has changed.
    case changedFile
    /// The devices do not come to rest.
    case restless
    /// A synchronization with nothing to do has written something.
    case wroteWhenIdle
    /// Something waits, or is parked, without a reported reason.
    case unexplained
    /// A statement gives something else than without our triggers.
    case twin
    /// Something was thrown: its code.
    case error(String)
  }

  /// What was violated.
  public var kind: Kind
  /// The particulars.
  public var details: String
  /// The index of the step after which it was seen; `nil` for the end.
  var step: Int?

  init(_ kind: Kind, _ details: String) {
    self.kind = kind
    self.details = details
  }

  /// Something that the product threw.
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
