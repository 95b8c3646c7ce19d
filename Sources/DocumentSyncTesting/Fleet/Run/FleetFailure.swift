import DocumentSync
import SyncStore

/// The reason why a history failed.
package struct FleetFailure: Hashable, Sendable, Error {
  /// The kind of violation. ``Shrinker`` accepts only shorter histories that fail with the same
  /// kind.
  package enum Kind: Hashable, Sendable {
    /// A device shows other rows than the oracle.
    case oracle
    /// Devices with the same change sets show different rows.
    case visible
    /// Devices with the same change sets have different logical states.
    case logical
    /// `integrity_check` reports a problem, such as a violated constraint.
    case integrity
    /// `foreign_key_check` reports a problem.
    case foreignKeys
    /// The bookkeeping is inconsistent, or does not agree with the tables.
    case bookkeeping
    /// An accepted edit is in no change set.
    case lost
    /// A published file has changed.
    case changedFile
    /// The devices do not come to rest.
    case restless
    /// A synchronization with nothing to do has written something.
    case wroteWhenIdle
    /// A change set waits, or a row is hidden, without a reported reason.
    case unexplained
    /// A store has changed rows otherwise than it told.
    case told
    /// One half of a synchronization did what belongs to the other.
    case half
    /// A table that cannot be synchronized has other rows after a synchronization, or other devices
    /// have heard of it.
    case loose
    /// A row of an excluded table has not followed the row to which it refers.
    case marks
    /// A value of an excluded column has not stayed with its row.
    case drafts
    /// A row of a database that joined the document, or a reference, is not what it was.
    case merged
    /// Change sets were undone, and other rows are shown than before.
    case undone
    /// A statement has another result than without our triggers.
    case twin
    /// The product threw an error with this code.
    case error(String)
  }

  /// The kind of violation.
  package var kind: Kind
  /// The rows, values or files that differ, as text for people.
  package var details: String
  /// The index of the step after which the violation was found; `nil` for the end.
  var step: Int?

  init(_ kind: Kind, _ details: String) {
    self.kind = kind
    self.details = details
  }

  /// Creates the failure for an error that the product threw.
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
