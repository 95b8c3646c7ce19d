import DocumentSync
import GRDB

/// From the mirror to the model.
extension ModelMirror {
  /// How many records of one delivery the adapter may refuse before it counts as failing.
  private static let greatestRefusals = 100

  /// What the adapter does with a part of an import.
  private struct Outcome {
    var saved: [ModelRecord] = []
    var deleted: [ModelRecord.ID] = []
    var refused: [(id: ModelRecord.ID, error: any Error)] = []
  }

  /// Delivers what is different now. Returns whether the model has all of it; if not, it is worth to
  /// try again.
  func deliverOnce(_ report: inout ModelReport) async throws -> Bool {
    let schema = schema
    let differences = try await database.read { database in
      try MirrorRecords(database: database, schema: schema).differences()
    }
    report.undelivered = []
    report.problems.removeAll { [.recordRefused, .deletionNotDone].contains($0.kind) }
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

  /// Runs one import. Returns whether the model has taken something, or has edits that are to be taken.
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
    var outcome = Outcome()
    let result: ModelImport
    do {
      try await ask("prepareToImport") { try await $0.prepareToImport() }
      for batch in batches(of: records) {
        try await save(batch, &outcome, refusals: &refusals)
      }
      for batch in batches(of: deleting) {
        try await delete(batch, &outcome, refusals: &refusals)
      }
      let position = makePosition()
      try await begin(position, saving: outcome.saved, deleting: outcome.deleted)
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
    for (id, error) in outcome.refused {
      let isDeletion = deleting.contains(id)
      report.add(
        isDeletion ? .deletionNotDone : .recordRefused, id,
        isDeletion
          ? "The model refused to delete the record: \(error)."
          : "The model refused the record: \(error).",
        "Correct the model or the record. The next synchronization tries again.")
    }
    let left = result.leftAlone
    report.undelivered.formUnion(outcome.refused.map(\.id))
    report.undelivered.formUnion(
      left.intersection(outcome.saved.map(\.id) + outcome.deleted))
    let saved = outcome.saved.count { !left.contains($0.id) }
    let deleted = outcome.deleted.count { !left.contains($0) }
    report.savedRecords += saved
    report.deletedRecords += deleted
    return saved + deleted > 0 || !left.isEmpty
  }

  private func makePosition() -> String {
    let random = options.manager.environment.random
    return String(random(), radix: 36) + "-" + String(random(), radix: 36)
  }

  private func batches<Element>(of elements: [Element]) -> [[Element]] {
    stride(from: 0, to: elements.count, by: max(1, options.batchSize)).map {
      Array(elements[$0..<min($0 + max(1, options.batchSize), elements.count)])
    }
  }

  private func save(
    _ batch: [ModelRecord], _ outcome: inout Outcome, refusals: inout Int
  ) async throws {
    if let error = try await refusal("save", { try await $0.save(batch) }) {
      guard batch.count > 1 else {
        outcome.refused.append((batch[0].id, error))
        return try count(&refusals, error)
      }
      for half in halves(of: batch) { try await save(half, &outcome, refusals: &refusals) }
    } else {
      outcome.saved += batch
    }
  }

  private func delete(
    _ batch: [ModelRecord.ID], _ outcome: inout Outcome, refusals: inout Int
  ) async throws {
    if let error = try await refusal("delete", { try await $0.delete(batch) }) {
      guard batch.count > 1 else {
        outcome.refused.append((batch[0], error))
        return try count(&refusals, error)
      }
      for half in halves(of: batch) { try await delete(half, &outcome, refusals: &refusals) }
    } else {
      outcome.deleted += batch
    }
  }

  private func halves<Element>(of batch: [Element]) -> [[Element]] {
    [Array(batch.prefix(batch.count / 2)), Array(batch.dropFirst(batch.count / 2))]
  }

  /// Returns the error with which the adapter refuses a batch, or `nil`.
  private func refusal(
    _ requirement: String, _ call: (any ModelAdapter) async throws -> Void
  ) async throws -> (any Error)? {
    do {
      try await ask(requirement, call)
      return nil
    } catch let error as SyncError where error.code == .adapterFailed {
      return error.underlying ?? error
    }
  }

  private func count(_ refusals: inout Int, _ error: any Error) throws {
    refusals += 1
    guard refusals > Self.greatestRefusals else { return }
    throw SyncError(
      .adapterFailed, operation: "synchronize the model", path: manager.path,
      message: "The application's model refuses record after record.",
      remedy: "Nothing is lost. The next synchronization tries again.", detail: "\(error)",
      underlying: error)
  }
}
