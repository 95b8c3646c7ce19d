/// The requirements of ``ModelAdapter``, as checks that any test framework can run.
///
/// ```swift
/// let failures = try await ModelAdapterConformance.run(samples: samples) {
///   try await makeSubject()
/// }
/// #expect(failures.isEmpty)
/// ```
///
/// The checks cover one adapter and its model. They do not cover a mirror.
public enum ModelAdapterConformance {
  /// An adapter with a model of its own that has no records, and what the application does with it.
  public struct Subject: Sendable {
    /// Stands between the model and the checks.
    public var adapter: any ModelAdapter
    /// Creates or changes a record in the model, durably.
    public var put: @Sendable (ModelRecord) async throws -> Void
    /// Deletes a record from the model, durably.
    public var remove: @Sendable (ModelRecord.ID) async throws -> Void
    /// Drops the adapter as if the process ended, and makes another one of the same model.
    public var restart: @Sendable () async throws -> Subject

    /// Creates a subject.
    public init(
      adapter: any ModelAdapter, put: @escaping @Sendable (ModelRecord) async throws -> Void,
      remove: @escaping @Sendable (ModelRecord.ID) async throws -> Void,
      restart: @escaping @Sendable () async throws -> Subject
    ) {
      self.adapter = adapter
      self.put = put
      self.remove = remove
      self.restart = restart
    }
  }

  /// A record that the model can have, and the same record with other values.
  public struct Sample: Sendable {
    /// One state of it.
    public var record: ModelRecord
    /// Another state of it.
    public var changed: ModelRecord

    /// Creates a sample.
    public init(_ record: ModelRecord, changed: ModelRecord) {
      self.record = record
      self.changed = changed
    }
  }

  /// A requirement that the adapter does not meet.
  public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The requirement.
    public var check: String
    /// What the check found instead.
    public var reason: String
    /// The requirement and the reason.
    public var description: String { "\(check): \(reason)" }
  }

  /// Runs every check on a subject of its own; returns the failures. Rethrows the errors of `makeSubject`.
  ///
  /// - Parameters:
  ///   - samples: Three samples or more, none of which refers to another record.
  ///   - makeSubject: Makes a subject.
  public static func run(
    samples: [Sample], makeSubject: () async throws -> Subject
  ) async throws -> [Failure] {
    guard samples.count >= 3, Set(samples.map(\.record.id)).count == samples.count,
      samples.allSatisfy({ $0.record.id == $0.changed.id && $0.record != $0.changed })
    else {
      return [
        Failure(check: "samples", reason: "three different ones are needed, and two states of each")
      ]
    }
    var failures: [Failure] = []
    for (description, check) in checks {
      let subject = try await makeSubject()
      do {
        try await check(subject, samples)
      } catch let failure as Failure {
        failures.append(Failure(check: description, reason: failure.reason))
      } catch {
        failures.append(Failure(check: description, reason: "unexpected error: \(error)"))
      }
    }
    return failures
  }

  private typealias Check = @Sendable (Subject, [Sample]) async throws -> Void

  private static let checks: [(String, Check)] = [
    ("an empty model has nothing to report", emptyModel),
    ("an edit is reported until it is acknowledged, by another process as well", edits),
    ("a batch has at most as many records as the limit, and all come in the end", limits),
    ("an edit that is newer than the acknowledged one stays unreported", newerEdits),
    ("a record that is deleted before it is acknowledged is marked then", earlyDeletions),
    ("a deletion is reported until it is acknowledged, and not as an edit", deletions),
    ("a record that was created again is not reported as deleted", createdAgain),
    ("an import is not reported as an edit, and is there with its position", imports),
    ("an import that was not persisted is dropped", droppedImports),
    ("an import without records changes nothing and leaves edits unreported", emptyImport),
    ("an import leaves records alone that have an edit", leftAlone),
    ("an import may be repeated", repeatedImports),
    ("an imported record that the application deletes is reported", deletedImports),
    ("after the tracking was deleted, all records are reported and no deletion", deletedTracking),
  ]

  private static func require(
    _ condition: Bool, _ reason: @autoclosure () -> String
  ) throws {
    if !condition { throw Failure(check: "", reason: reason()) }
  }

  private static func requireReported(
    _ records: [ModelRecord], deleted: [ModelRecord.ID] = [], _ adapter: any ModelAdapter
  ) async throws {
    let changed = try await adapter.recordsToUpload(limit: 100)
    try require(
      Set(changed) == Set(records) && changed.count == records.count,
      "recordsToUpload returns \(changed), not \(records)")
    let marked = try await adapter.recordsMarkedForDeletion(limit: 100)
    try require(
      Set(marked) == Set(deleted) && marked.count == deleted.count,
      "recordsMarkedForDeletion returns \(marked), not \(deleted)")
    let hasChanges = try await adapter.hasChanges()
    try require(
      hasChanges == !(records.isEmpty && deleted.isEmpty), "hasChanges returns \(hasChanges)")
  }

  private static func requirePresent(
    _ record: ModelRecord?, _ id: ModelRecord.ID, _ adapter: any ModelAdapter
  ) async throws {
    let present = try await adapter.record(for: id)
    try require(
      present == record,
      "record(for:) returns \(String(describing: present)), not \(String(describing: record))")
    let hasRecord = try await adapter.hasRecord(id)
    try require(hasRecord == (record != nil), "hasRecord returns \(hasRecord)")
  }

  @discardableResult
  private static func runImport(
    _ adapter: any ModelAdapter, position: String, saving records: [ModelRecord] = [],
    deleting ids: [ModelRecord.ID] = []
  ) async throws -> ModelImport {
    try await adapter.prepareToImport()
    if !records.isEmpty { try await adapter.save(records) }
    if !ids.isEmpty { try await adapter.delete(ids) }
    let result = try await adapter.persistImportedChanges(position: position)
    await adapter.didFinishImport(error: nil)
    try require(result.position == position, "the position of the result is \(result.position)")
    let last = try await adapter.lastImport()
    try require(last == result, "lastImport returns another result")
    return result
  }

  private static func emptyModel(_ subject: Subject, _ samples: [Sample]) async throws {
    try await requireReported([], subject.adapter)
    let last = try await subject.adapter.lastImport()
    try require(last == nil, "lastImport returns \(String(describing: last))")
    try await requirePresent(nil, samples[0].record.id, subject.adapter)
  }

  private static func edits(_ subject: Subject, _ samples: [Sample]) async throws {
    try await subject.put(samples[0].record)
    try await requireReported([samples[0].record], subject.adapter)
    var subject = try await subject.restart()
    try await requireReported([samples[0].record], subject.adapter)
    try await subject.adapter.didUpload([samples[0].record])
    try await subject.adapter.didUpload([samples[0].record])
    try await requireReported([], subject.adapter)
    subject = try await subject.restart()
    try await requireReported([], subject.adapter)
    try await subject.put(samples[0].changed)
    try await requireReported([samples[0].changed], subject.adapter)
    try await requirePresent(samples[0].changed, samples[0].record.id, subject.adapter)
  }

  private static func limits(_ subject: Subject, _ samples: [Sample]) async throws {
    for sample in samples { try await subject.put(sample.record) }
    var rest = Set(samples.map(\.record))
    while !rest.isEmpty {
      let batch = try await subject.adapter.recordsToUpload(limit: 2)
      try require(
        !batch.isEmpty && batch.count <= 2 && rest.isSuperset(of: batch),
        "the batch is \(batch), with the limit 2")
      try await subject.adapter.didUpload(batch)
      rest.subtract(batch)
    }
    for sample in samples { try await subject.remove(sample.record.id) }
    var ids = Set(samples.map(\.record.id))
    while !ids.isEmpty {
      let batch = try await subject.adapter.recordsMarkedForDeletion(limit: 2)
      try require(
        !batch.isEmpty && batch.count <= 2 && ids.isSuperset(of: batch),
        "the batch of deletions is \(batch), with the limit 2")
      try await subject.adapter.didDelete(batch)
      ids.subtract(batch)
    }
    try await requireReported([], subject.adapter)
  }

  private static func newerEdits(_ subject: Subject, _ samples: [Sample]) async throws {
    try await subject.put(samples[0].record)
    try await subject.put(samples[0].changed)
    try await subject.adapter.didUpload([samples[0].record])
    try await requireReported([samples[0].changed], subject.adapter)
  }

  private static func earlyDeletions(_ subject: Subject, _ samples: [Sample]) async throws {
    let record = samples[0].record
    try await subject.put(record)
    try await requireReported([record], subject.adapter)
    try await subject.remove(record.id)
    try await subject.adapter.didUpload([record])
    try await requireReported([], deleted: [record.id], subject.adapter)
    try await requireReported([], deleted: [record.id], subject.restart().adapter)
  }

  private static func deletions(_ subject: Subject, _ samples: [Sample]) async throws {
    for sample in samples.prefix(2) { try await subject.put(sample.record) }
    try await subject.adapter.didUpload(samples.prefix(2).map(\.record))
    // One with an edit that was not reported, too.
    try await subject.put(samples[1].changed)
    let ids = samples.prefix(2).map(\.record.id)
    for id in ids { try await subject.remove(id) }
    try await requireReported([], deleted: ids, subject.adapter)
    let subject = try await subject.restart()
    try await requireReported([], deleted: ids, subject.adapter)
    try await subject.adapter.didDelete(ids)
    try await subject.adapter.didDelete(ids)
    try await requireReported([], subject.adapter)
    try await requirePresent(nil, ids[0], subject.adapter)
  }

  private static func createdAgain(_ subject: Subject, _ samples: [Sample]) async throws {
    try await subject.put(samples[0].record)
    try await subject.adapter.didUpload([samples[0].record])
    try await subject.remove(samples[0].record.id)
    try await subject.put(samples[0].changed)
    try await requireReported([samples[0].changed], subject.adapter)
    // The deletion may have been read before.
    try await subject.adapter.didDelete([samples[0].record.id])
    try await requireReported([samples[0].changed], subject.adapter)
  }

  private static func imports(_ subject: Subject, _ samples: [Sample]) async throws {
    let records = samples.map(\.record)
    var result = try await runImport(subject.adapter, position: "1", saving: records)
    try require(result.leftAlone.isEmpty, "records were left alone: \(result.leftAlone)")
    try await requireReported([], subject.adapter)
    result = try await runImport(
      subject.adapter, position: "2", saving: [samples[0].changed], deleting: [records[1].id])
    try require(result.leftAlone.isEmpty, "records were left alone: \(result.leftAlone)")
    let subject = try await subject.restart()
    let last = try await subject.adapter.lastImport()
    try require(last == result, "another process gets another lastImport")
    try await requireReported([], subject.adapter)
    try await requirePresent(samples[0].changed, records[0].id, subject.adapter)
    try await requirePresent(nil, records[1].id, subject.adapter)
    try await requirePresent(records[2], records[2].id, subject.adapter)
  }

  private struct Stop: Error {}

  private static func droppedImports(_ subject: Subject, _ samples: [Sample]) async throws {
    let records = samples.map(\.record)
    try await runImport(subject.adapter, position: "1", saving: [records[0]])
    let adapter = subject.adapter
    try await adapter.prepareToImport()
    try await adapter.save([samples[0].changed, records[1]])
    await adapter.didFinishImport(error: Stop())
    try await requirePresent(records[0], records[0].id, adapter)
    try await requirePresent(nil, records[1].id, adapter)
    try await runImport(adapter, position: "2")
    try await requirePresent(nil, records[1].id, adapter)
    try await adapter.prepareToImport()
    try await adapter.save([records[1]])
    try await adapter.delete([records[0].id])
    let next = try await subject.restart().adapter
    try await requirePresent(records[0], records[0].id, next)
    try await requirePresent(nil, records[1].id, next)
    let last = try await next.lastImport()
    try require(last?.position == "2", "lastImport returns \(String(describing: last))")
    try await requireReported([], next)
  }

  private static func emptyImport(_ subject: Subject, _ samples: [Sample]) async throws {
    let records = samples.map(\.record)
    try await runImport(subject.adapter, position: "1", saving: [records[0], records[1]])
    try await subject.put(samples[0].changed)
    try await subject.put(records[2])
    try await subject.remove(records[1].id)
    let result = try await runImport(subject.adapter, position: "2")
    try require(result.leftAlone.isEmpty, "records were left alone: \(result.leftAlone)")
    for adapter in [subject.adapter, try await subject.restart().adapter] {
      try await requireReported(
        [samples[0].changed, records[2]], deleted: [records[1].id], adapter)
    }
  }

  private static func leftAlone(_ subject: Subject, _ samples: [Sample]) async throws {
    let records = samples.map(\.record)
    let adapter = subject.adapter
    try await runImport(adapter, position: "1", saving: records)
    try await subject.put(samples[0].changed)
    try await subject.remove(records[1].id)
    try await adapter.prepareToImport()
    try await adapter.save([records[0], samples[1].changed])
    try await adapter.delete([records[2].id])
    // During the import.
    try await subject.put(samples[2].changed)
    let result = try await adapter.persistImportedChanges(position: "2")
    await adapter.didFinishImport(error: nil)
    try require(
      result == ModelImport(position: "2", leftAlone: Set(records.prefix(3).map(\.id))),
      "the result is \(result)")
    let last = try await subject.restart().adapter.lastImport()
    try require(last == result, "lastImport returns another result")
    try await requireReported(
      [samples[0].changed, samples[2].changed], deleted: [records[1].id], adapter)
  }

  private static func repeatedImports(_ subject: Subject, _ samples: [Sample]) async throws {
    let records = samples.map(\.record)
    for position in ["1", "2"] {
      try await subject.adapter.prepareToImport()
      try await subject.adapter.save(records)
      try await subject.adapter.save(Array(records.prefix(1)))
      try await subject.adapter.delete([records[2].id])
      try await subject.adapter.delete([records[2].id])
      let result = try await subject.adapter.persistImportedChanges(position: position)
      try require(result.leftAlone.isEmpty, "records were left alone: \(result.leftAlone)")
      await subject.adapter.didFinishImport(error: nil)
    }
    try await runImport(subject.adapter, position: "3", deleting: [records[2].id])
    try await requirePresent(records[0], records[0].id, subject.adapter)
    try await requirePresent(nil, records[2].id, subject.adapter)
    try await requireReported([], subject.adapter)
  }

  private static func deletedImports(_ subject: Subject, _ samples: [Sample]) async throws {
    try await runImport(subject.adapter, position: "1", saving: [samples[0].record])
    try await subject.remove(samples[0].record.id)
    try await requireReported([], deleted: [samples[0].record.id], subject.adapter)
  }

  private static func deletedTracking(_ subject: Subject, _ samples: [Sample]) async throws {
    let records = samples.map(\.record)
    try await runImport(subject.adapter, position: "1", saving: [records[0], records[1]])
    try await subject.put(records[2])
    try await subject.adapter.didUpload([records[2]])
    try await subject.remove(records[1].id)
    try await subject.adapter.deleteChangeTracking()
    try await requireReported([records[0], records[2]], subject.adapter)
    let next = try await subject.restart()
    try await requireReported([records[0], records[2]], next.adapter)
    let last = try await next.adapter.lastImport()
    try require(last == nil, "lastImport returns \(String(describing: last))")
  }
}
