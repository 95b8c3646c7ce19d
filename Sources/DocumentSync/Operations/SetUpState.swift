import SyncDirectory
import SyncModel
import SyncStore

/// A store whose first set-up was begun and is not complete, and the errors about it.
package struct SetUpState: Sendable {
  /// What a call has done with a set-up that was interrupted before.
  package enum Resumption: Sendable {
    /// It has completed that set-up.
    case completed
    /// It has ended that set-up and begun another one.
    case replaced
  }

  /// What the store is bound to.
  package let binding: StoreBinding
  /// How the document was to be synchronized.
  package let configuration: StoreConfiguration

  /// Reads the state of the store at `path`; `nil` if its set-up is complete, or if it is a later
  /// one, which the next synchronization completes.
  package static func read(storeAt path: String) throws -> SetUpState? {
    let (binding, configuration, record) = try LocalStore.look(
      at: path, record: StoreRecords.setUpKey)
    guard record == nil, binding.ancestor == nil else { return nil }
    return SetUpState(binding: binding, configuration: configuration)
  }

  /// The error of a store whose set-up is not complete.
  static func unfinished(
    _ binding: StoreBinding, path: String, operation: String
  ) -> SyncError {
    SyncError(
      .setUpUnfinished, operation: operation, path: path,
      message: "The set-up of the store as the document “\(binding.documentIdentifier)” of "
        + "“\(binding.application)” in \(binding.directory) is not complete.",
      remedy: binding.ancestor == nil
        ? "Complete it with the same \(.create) as before. To end it, take the store out of sync "
          + "with \(.leaveAbandoning)."
        : "Complete it with \(.synchronize).")
  }

  /// The error of a failed set-up that was taken back.
  static func takenBack(_ error: SyncError) -> SyncError {
    var error = error
    error.message += " The set-up was taken back: the database is not under sync."
    return error
  }

  /// The error of a failed set-up that could not be taken back.
  static func left(_ error: SyncError) -> SyncError {
    var error = error
    error.message += " The set-up is not complete."
    let first: Remedy =
      error.code == .directoryAway
      ? "Check the path, and connect or mount the shared directory." : error.remedy
    error.remedy =
      first + " Then complete the set-up with the same \(.create). To end it instead, take "
      + "the store out of sync with \(.leaveAbandoning)."
    return error
  }

  /// The error of a set-up that cannot be replaced, since other devices can join its document.
  ///
  /// - Parameter hasOthers: Whether one is known to have joined.
  static func irreplaceable(
    _ binding: StoreBinding, hasOthers: Bool, path: String, operation: String
  ) -> SyncError {
    let ending: Remedy =
      hasOthers
      ? "; the other devices keep the document."
      : ", and delete the document with \(.deleteDocument)."
    return SyncError(
      .setUpUnfinished, operation: operation, path: path,
      message: "The store was being set up as the document “\(binding.documentIdentifier)” in "
        + "\(binding.directory), and other devices "
        + (hasOthers ? "have joined that document." : "can join that document already."),
      remedy:
        "Complete that set-up with the same \(.create) as before. To end it instead, take the "
        + "store out of sync with \(.leaveAbandoning)" + ending)
  }
}
