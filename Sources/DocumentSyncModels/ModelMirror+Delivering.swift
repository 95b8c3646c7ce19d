import DocumentSync
import GRDB

/// From the mirror to the model.
extension ModelMirror {
  /// How many records the adapter may refuse, one after the other, before the mirror stops to look for each
  /// one that is refused.
  private static let greatestRefusals = 100

  /// What the adapter does with what an import offers.
  private struct Outcome<Element: Sendable> {
    var accepted: [Element] = []
    var refused: [(element: Element, error: any Error)] = []
  }

  /// Delivers what is different now. Returns whether the model has all of it; if not, it is worth
  /// trying again.
  func deliverOnce(_ report: inout ModelReport) async throws -> Bool {
    let schema = schema
    let differences = try await database.read { database in
      try MirrorRecords(database: database, schema: schema).differences()
    }
    report.undelivered = []
    report.removeProblems { [.recordRefused, .deletionNotDone].contains($0.kind) }
    guard !differences.isEmpty else { return true }
    var saves = RecordOrder.sorted(differences.saved)[...]
    var deletions = RecordOrder.sorted(differences.deleted).reversed()[...]
    var refusals = 0
    var hasMoved = false
    while !saves.isEmpty || !deletions.isEmpty {
      // Deletions come last: what is moved away from a record is not deleted with it.
      let saving = Array(saves.prefix(options.importSize))
      saves = saves.dropFirst(saving.count)
      let deleting = saves.isEmpty ? Array(deletions.prefix(options.importSize)) : []
      deletions = deletions.dropFirst(deleting.count)
      if try await deliver(saving, deleting, refusals: &refusals, &report) { hasMoved = true }
    }
    // Another attempt helps if edits were left alone, and may help if a deletion has made room.
    return report.undelivered.isEmpty || !hasMoved
  }

  /// Delivers in one import. Returns whether the model has taken something, or has edits that are to be taken.
  private func deliver(
    _ saving: [ModelRecord.ID], _ deleting: [ModelRecord.ID], refusals: inout Int,
    _ report: inout ModelReport
  ) async throws -> Bool {
    let schema = schema
    let records = try await database.read { database in
      let records = MirrorRecords(database: database, schema: schema)
      return try saving.compactMap { id in
        try records.shown(id).map { ModelRecord(id: id, fields: $0) }
      }
    }
    var saved = Outcome<ModelRecord>()
    var deleted = Outcome<ModelRecord.ID>()
    let result = try await runImport {
      for batch in batches(of: records) {
        try await offer(batch, &saved, &refusals, "save") { try await $0.save($1) }
      }
      for batch in batches(of: deleting) {
        try await offer(batch, &deleted, &refusals, "delete") { try await $0.delete($1) }
      }
      return (saved.accepted, deleted.accepted)
    }
    for (record, error) in saved.refused {
      report.undelivered.insert(record.id)
      report.add(
        .recordRefused, record.id, "The model refused the record: \(error).",
        "Correct the model or the record. The next synchronization tries again.")
    }
    for (id, error) in deleted.refused {
      report.undelivered.insert(id)
      report.add(
        .deletionNotDone, id, "The model refused to delete the record: \(error).",
        "Correct the model or the record. The next synchronization tries again.")
    }
    let left = result.leftAlone
    report.undelivered.formUnion(
      left.intersection(saved.accepted.map(\.id) + deleted.accepted))
    report.savedRecords += saved.accepted.count { !left.contains($0.id) }
    report.deletedRecords += deleted.accepted.count { !left.contains($0) }
    return !saved.accepted.isEmpty || !deleted.accepted.isEmpty
  }

  /// Runs one import.
  ///
  /// - Parameter fill: Saves and deletes; returns what the adapter has accepted.
  func runImport(
    _ fill: () async throws -> (saved: [ModelRecord], deleted: [ModelRecord.ID])
  ) async throws -> ModelImport {
    let result: ModelImport
    do {
      try await ask("prepareToImport") { try await $0.prepareToImport() }
      try await requirePosition()
      let (saved, deleted) = try await fill()
      let position = makePosition()
      try await begin(position, saving: saved, deleting: deleted)
      result = try await ask("persistImportedChanges") {
        try await $0.persistImportedChanges(position: position)
      }
      guard result.position == position else {
        throw SyncError(
          .adapterFailed, operation: "synchronize the model", path: manager.path,
          message: "“persistImportedChanges” returned another position than the one that it got.",
          remedy: "Correct the adapter: it has to keep the position as it is.")
      }
    } catch {
      await adapter.didFinishImport(error: error)
      throw error
    }
    do {
      try await end(result)
    } catch {
      // The model has it all the same.
      await adapter.didFinishImport(error: nil)
      throw error
    }
    await adapter.didFinishImport(error: nil)
    return result
  }

  /// Throws unless the model is the one that the mirror knows. After that, what the adapter has returned before
  /// is of this model.
  func requirePosition() async throws {
    let last = try await ask("lastImport") { try await $0.lastImport() }
    guard try await position() == last?.position else {
      throw SyncError(
        .adapterFailed, operation: "synchronize the model", path: manager.path,
        message: "The model was put back to an earlier state during the synchronization.",
        remedy: "Nothing is lost. The next synchronization compares all records.")
    }
  }

  private func makePosition() -> String {
    let random = manager.environment.random
    return String(random(), radix: 36) + "-" + String(random(), radix: 36)
  }

  private func batches<Element>(of elements: [Element]) -> [[Element]] {
    stride(from: 0, to: elements.count, by: options.batchSize).map {
      Array(elements[$0..<min($0 + options.batchSize, elements.count)])
    }
  }

  /// Offers a batch, and in halves if it is refused. After many refusals, one after the other, the first
  /// element stands for the batch.
  private func offer<Element: Sendable>(
    _ batch: [Element], _ outcome: inout Outcome<Element>, _ refusals: inout Int,
    _ requirement: String,
    _ call: @Sendable (any ModelAdapter, [Element]) async throws -> Void
  ) async throws {
    do {
      try await ask(requirement) { try await call($0, batch) }
      refusals = 0
      outcome.accepted += batch
      return
    } catch let error as SyncError where error.code == .adapterFailed {
      let error = error.underlying ?? error
      guard batch.count > 1 else {
        refusals += 1
        return outcome.refused.append((batch[0], error))
      }
      var parts = [Array(batch.prefix(batch.count / 2)), Array(batch.dropFirst(batch.count / 2))]
      if refusals > Self.greatestRefusals {
        try await offer(Array(batch.prefix(1)), &outcome, &refusals, requirement, call)
        guard refusals == 0 else {
          return outcome.refused += batch.dropFirst().map { ($0, error) }
        }
        parts = [Array(batch.dropFirst())]
      }
      for part in parts {
        try await offer(part, &outcome, &refusals, requirement, call)
      }
    }
  }
}
