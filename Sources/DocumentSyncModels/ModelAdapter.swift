/// Stands between an application's model and its synchronization, if the model is not in SQLite.
///
/// A ``ModelMirror`` calls the adapter. It takes what has changed in the model, and gives it what other devices have
/// changed. The mirror never calls two functions at the same time. The application may edit the model at any
/// time, also during a call.
///
/// A *reported* edit is one whose record or deletion was acknowledged by ``didUpload(_:)`` or ``didDelete(_:)``
/// as the model still has it. The adapter records, durably and together with the edit, which edits are not
/// reported. If the process ends at any moment, everything that was not acknowledged is reported again, and an
/// import that was not persisted comes again. So each function may be called again with the same arguments,
/// and must then have the same effect as one call.
///
/// An import is: ``prepareToImport()``, any number of ``save(_:)``, then of ``delete(_:)``,
/// ``persistImportedChanges(position:)``, and ``didFinishImport(error:)``, which comes last in any case. What
/// an import writes is not reported as an edit.
///
/// Run ``ModelAdapterConformance`` in a test of your adapter.
public protocol ModelAdapter: Sendable {
  // MARK: Edits of the application

  /// Returns whether there are edits that are not reported.
  func hasChanges() async throws -> Bool

  /// Returns records that were created or changed since they were reported, with all their fields.
  ///
  /// The same records come again until they are acknowledged. A record comes once, and is not in
  /// ``recordsMarkedForDeletion(limit:)`` as well. The order is free: a record may come before the one to
  /// which it refers.
  ///
  /// - Parameter limit: The most records to return. If there are more, the mirror asks again after it has
  ///   acknowledged these.
  func recordsToUpload(limit: Int) async throws -> [ModelRecord]

  /// Acknowledges records: the mirror has them durably.
  ///
  /// If the application has changed such a record since, so that it differs from the one here, the record
  /// stays unreported. If the application has deleted it since, mark it for deletion, even if it was never
  /// reported before: other devices are going to have it.
  func didUpload(_ records: [ModelRecord]) async throws

  /// Returns the names of records that the application has deleted since they were reported, or since an
  /// import has saved them.
  ///
  /// The same names come again until they are acknowledged. A record that the application has created again
  /// is no deleted one: ``recordsToUpload(limit:)`` returns it.
  /// Edits that were made before a deletion that is here, or together with it, are in ``recordsToUpload(limit:)`` by
  /// then: an edit may move a record away from the deleted one.
  func recordsMarkedForDeletion(limit: Int) async throws -> [ModelRecord.ID]

  /// Acknowledges deletions: the mirror has them durably. A record that the application has created again since
  /// stays unreported.
  func didDelete(_ ids: [ModelRecord.ID]) async throws

  /// Forgets what was reported and imported: from now on each record of the model is unreported, and
  /// no record is marked for deletion. ``lastImport()`` returns `nil` until the next import.
  ///
  /// The mirror calls it when it is new, and when the model was put back to an earlier state. Call it yourself
  /// after the document was left.
  func deleteChangeTracking() async throws

  // MARK: Imports

  /// Begins an import. What an earlier import has saved and not persisted is dropped.
  func prepareToImport() async throws

  /// Saves records of other devices: creates them, or replaces all their fields.
  ///
  /// Records to which others refer come before these where that is possible: not if records refer to one
  /// another in a circle. An error means that the adapter refuses the records as a whole, and keeps none of them. Then the
  /// mirror offers them again in halves, until it has found those that are refused, and goes on with the others.
  /// The refused ones come again with the next synchronization.
  func save(_ records: [ModelRecord]) async throws

  /// Deletes records that other devices have deleted, after all records of the import were saved. Records
  /// that refer to others come before these. A record that is not there is no error.
  func delete(_ ids: [ModelRecord.ID]) async throws

  /// Makes the import durable, as a whole and together with the position and with the result.
  ///
  /// A record with an edit that is not reported stays as it is: the import neither changes nor deletes it. So
  /// does one with an edit that was made during the import. The result has their names. The mirror takes
  /// these edits, merges them, and delivers the records again.
  ///
  /// - Parameter position: Names the import.
  /// - Returns: The position, and the records that were left as they are.
  func persistImportedChanges(position: String) async throws -> ModelImport

  /// Returns the result of the last import that was persisted; `nil` if there was none. By its position the
  /// mirror knows whether an import was persisted during which the process ended, and whether the model was
  /// put back to an earlier state.
  func lastImport() async throws -> ModelImport?

  /// Ends an import.
  ///
  /// - Parameter error: The error for which it ended before it was persisted; drop then what was saved.
  func didFinishImport(error: (any Error)?) async

  // MARK: Looking up

  /// Returns a record as the model has it now, or `nil`.
  func record(for id: ModelRecord.ID) async throws -> ModelRecord?

  /// Returns whether the model has a record now.
  func hasRecord(_ id: ModelRecord.ID) async throws -> Bool
}

extension ModelAdapter {
  /// Looks the record up.
  public func hasRecord(_ id: ModelRecord.ID) async throws -> Bool {
    try await record(for: id) != nil
  }
}

/// The result of an import into an application's model.
public struct ModelImport: Hashable, Sendable, Codable {
  /// The name of the import.
  public var position: String
  /// The records that were left as they are, since they had edits that were not reported.
  public var leftAlone: Set<ModelRecord.ID>

  /// Creates a result.
  public init(position: String, leftAlone: Set<ModelRecord.ID> = []) {
    self.position = position
    self.leftAlone = leftAlone
  }
}
