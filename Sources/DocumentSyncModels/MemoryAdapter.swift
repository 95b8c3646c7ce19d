/// A model in memory, for tests. It marks what the application changes.
public actor MemoryAdapter: ModelAdapter {
  /// What a model in a file or a database would keep if its process ends.
  public struct Contents: Hashable, Sendable {
    /// What the application has, by name.
    public internal(set) var records: [ModelRecord.ID: ModelRecord] = [:]
    /// Those that were created or changed since they were reported.
    public internal(set) var changed: Set<ModelRecord.ID> = []
    /// Those that were deleted, and whose deletion is not reported.
    public internal(set) var deleted: Set<ModelRecord.ID> = []
    /// The result of the import that was persisted last.
    public internal(set) var lastImport: ModelImport?

    /// Creates a model without records.
    public init() {}
  }

  /// What would stay if the process ended now.
  public private(set) var contents: Contents
  /// What the import under way saves and, without a record, deletes.
  private var pending: [ModelRecord.ID: ModelRecord?] = [:]

  /// Creates a model, as after the start of a process.
  public init(_ contents: Contents = Contents()) { self.contents = contents }

  /// Creates or changes a record, as the application does.
  public func put(_ record: ModelRecord) {
    guard contents.records[record.id] != record else { return }
    contents.records[record.id] = record
    contents.changed.insert(record.id)
    contents.deleted.remove(record.id)
  }

  /// Deletes a record, as the application does.
  public func remove(_ id: ModelRecord.ID) {
    guard contents.records.removeValue(forKey: id) != nil else { return }
    contents.changed.remove(id)
    contents.deleted.insert(id)
  }

  /// The records, in order.
  public var records: [ModelRecord] { contents.records.values.sorted { $0.id < $1.id } }

  /// See ``ModelAdapter``.
  public func hasChanges() -> Bool { !contents.changed.isEmpty || !contents.deleted.isEmpty }

  /// See ``ModelAdapter``.
  public func recordsToUpload(limit: Int) -> [ModelRecord] {
    contents.changed.sorted().prefix(limit).compactMap { contents.records[$0] }
  }

  /// See ``ModelAdapter``.
  public func didUpload(_ records: [ModelRecord]) {
    for record in records where contents.records[record.id] == record {
      contents.changed.remove(record.id)
    }
  }

  /// See ``ModelAdapter``.
  public func recordsMarkedForDeletion(limit: Int) -> [ModelRecord.ID] {
    Array(contents.deleted.sorted().prefix(limit))
  }

  /// See ``ModelAdapter``.
  public func didDelete(_ ids: [ModelRecord.ID]) { contents.deleted.subtract(ids) }

  /// See ``ModelAdapter``.
  public func deleteChangeTracking() {
    contents.changed = Set(contents.records.keys)
    contents.deleted = []
    contents.lastImport = nil
  }

  /// See ``ModelAdapter``.
  public func prepareToImport() { pending = [:] }

  /// See ``ModelAdapter``.
  public func save(_ records: [ModelRecord]) {
    for record in records { pending[record.id] = record }
  }

  /// See ``ModelAdapter``.
  public func delete(_ ids: [ModelRecord.ID]) { for id in ids { pending[id] = .some(nil) } }

  /// See ``ModelAdapter``.
  public func persistImportedChanges(position: String) -> ModelImport {
    var result = ModelImport(position: position)
    for (id, record) in pending {
      if contents.changed.contains(id) || contents.deleted.contains(id) {
        result.leftAlone.insert(id)
      } else {
        contents.records[id] = record
      }
    }
    pending = [:]
    contents.lastImport = result
    return result
  }

  /// See ``ModelAdapter``.
  public func lastImport() -> ModelImport? { contents.lastImport }

  /// See ``ModelAdapter``.
  public func didFinishImport(error: (any Error)?) { pending = [:] }

  /// See ``ModelAdapter``.
  public func record(for id: ModelRecord.ID) -> ModelRecord? { contents.records[id] }
}
