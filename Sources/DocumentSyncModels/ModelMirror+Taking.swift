import DocumentSync
import GRDB

/// From the model to the mirror.
extension ModelMirror {
  /// How often one call takes a record that the application changes all the time.
  private static let greatestTakes = 3

  /// Takes the edits of the model, batch by batch. Each batch is acknowledged after its commit.
  func takeEdits(
    _ report: inout ModelReport, preference: MergedRows.Preference? = nil
  ) async throws {
    var taking = Taking(preference: preference)
    let noted = try await notedDeletions()
    var unacknowledged = try await unacknowledged()
    var isDue = try await ask("hasChanges") { try await $0.hasChanges() }
    if !unacknowledged.isEmpty { isDue = true }
    while isDue {
      // An edit may move a record away from one that is deleted then. So edits are read after the deletions
      // that are taken.
      let deletions = try await readDeletions(&report, &taking)
      taking.present = []
      try await takeRecords(&report, &taking)
      try await take(deletions, gone: unacknowledged.gone, &report, &taking)
      unacknowledged = try await self.unacknowledged()
      try await takeUnacknowledged(unacknowledged.present, &report, &taking)
      isDue = !deletions.isEmpty || !unacknowledged.gone.isEmpty
    }
    try await voidDeletions(noted)
    // All parents have come that come.
    let changing = taking.counts.filter { $0.value == Self.greatestTakes }.keys
    try await write(
      &report, preference: preference, isLast: true, edited: &taking.edited,
      untaken: Set(taking.refused.keys).union(changing)
    ) { try $0.finish() }
    try await forgetGone(&report)
    // A copy of the model that was made meanwhile does not have all of these edits.
    if taking.moves.areEditsLater { _ = try await runImport { ([], []) } }
  }

  /// What one call has taken of the model.
  private struct Taking {
    var preference: MergedRows.Preference?
    var moves = Moves()
    /// The records that were taken, as the model had them.
    var records: [ModelRecord.ID: ModelRecord] = [:]
    /// Those whose edits were written.
    var edited: Set<ModelRecord.ID> = []
    /// Those that were taken since deletions were read last.
    var present: Set<ModelRecord.ID> = []
    /// Those that cannot be taken.
    var refused: [ModelRecord.ID: ModelRecord] = [:]
    /// How often each was taken.
    var counts: [ModelRecord.ID: Int] = [:]
    /// How many were taken so often that they are not taken again.
    var exhausted = 0
    /// The deletions that were taken.
    var deletions: Set<ModelRecord.ID> = []
    /// Those that cannot be taken.
    var refusedDeletions: Set<ModelRecord.ID> = []
  }

  /// The positions that the model gets while edits are taken.
  ///
  /// An edit is taken between two positions: if the model is put back to a state before the edit, it has another
  /// position than the one that the mirror has noted.
  private struct Moves {
    /// Whether the model has got a position since the first edits were read.
    var isDone = false
    /// Whether edits were read after that.
    var areEditsLater = false
  }

  /// Gives the model a position of its own before edits are taken from it. Throws if the model was put back before
  /// the edits were read.
  private func movePosition(_ moves: inout Moves) async throws {
    if moves.isDone {
      moves.areEditsLater = true
      return try await requirePosition()
    }
    _ = try await runImport { ([], []) }
    moves.isDone = true
  }

  /// Records that were taken and whose acknowledgement did not come.
  private struct Unacknowledged {
    /// Those that the model does not have any more: it may have dropped them as if the mirror did not have them.
    var gone: [ModelRecord.ID] = []
    /// The others.
    var present: [ModelRecord.ID] = []

    var isEmpty: Bool { gone.isEmpty && present.isEmpty }
  }

  private func unacknowledged() async throws -> Unacknowledged {
    let schema = schema
    let taken = try await database.read { database in
      try MirrorRecords(database: database, schema: schema).taken()
    }
    var result = Unacknowledged()
    for id in taken {
      if try await ask("hasRecord", { try await $0.hasRecord(id) }) {
        result.present.append(id)
      } else {
        result.gone.append(id)
      }
    }
    return result
  }

  /// Takes records that were taken before and not acknowledged. The model was asked for its edits since: if it
  /// reports none, the application may have taken the edit back.
  private func takeUnacknowledged(
    _ ids: [ModelRecord.ID], _ report: inout ModelReport, _ taking: inout Taking
  ) async throws {
    let check = RecordCheck(schema: schema)
    var records: [ModelRecord] = []
    for id in ids where !taking.present.contains(id) && taking.refused[id] == nil {
      guard let record = try await ask("record", { try await $0.record(for: id) }),
        check.problem(with: record) == nil
      else { continue }
      records.append(record)
    }
    let other = try await different(records)
    if !other.isEmpty {
      try await movePosition(&taking.moves)
      let preference = taking.preference
      try await write(&report, preference: preference, edited: &taking.edited) { taking in
        try taking.take(other)
      }
      report.takenRecords += other.count
      for record in other { taking.records[record.id] = record }
    }
    if !records.isEmpty {
      let reported = records
      try await ask("didUpload") { try await $0.didUpload(reported) }
    }
    try await acknowledge(ids)
  }

  /// Returns the records that are not as the model is known to have them, or as they wait.
  private func different(_ given: [ModelRecord]) async throws -> [ModelRecord] {
    guard !given.isEmpty else { return [] }
    let schema = schema
    return try await database.read { database in
      let records = MirrorRecords(database: database, schema: schema)
      let waiting = try records.waitingNames()
      return try given.filter { try waiting.contains($0.id) || records.known($0.id) != $0.fields }
    }
  }

  /// The deletions that were taken in earlier calls, and are not carried out.
  private func notedDeletions() async throws -> [ModelRecord.ID] {
    let schema = schema
    return try await database.read { database in
      try MirrorRecords(database: database, schema: schema).deletions()
    }
  }

  /// Gives up deletions of records that the model has. If it has such a record as it was before, the adapter may
  /// not report it: the deletion was not acknowledged.
  private func voidDeletions(_ noted: [ModelRecord.ID]) async throws {
    var void: [ModelRecord.ID] = []
    for id in noted where try await ask("hasRecord", { try await $0.hasRecord(id) }) {
      void.append(id)
    }
    guard !void.isEmpty else { return }
    let (ids, schema) = (void, schema)
    try await database.write { database in
      let records = MirrorRecords(database: database, schema: schema)
      for id in ids { try records.setDeletion(id, false) }
    }
  }

  /// Notes that the acknowledgement of records is not missing.
  private func acknowledge(_ ids: [ModelRecord.ID]) async throws {
    guard !ids.isEmpty else { return }
    let schema = schema
    try await database.write { database in
      try MirrorRecords(database: database, schema: schema).setTaken(ids, false)
    }
  }

  /// Forgets what imports have deleted: every edit that was made before was taken, or waits.
  private func forgetGone(_ report: inout ModelReport) async throws {
    let schema = schema
    let edited = report.problems.filter { $0.kind == .editOfDeletedRecord }.compactMap(\.record)
    let restored = try await database.write { database in
      let records = MirrorRecords(database: database, schema: schema)
      try records.forgetGone()
      let restored = try edited.filter { try records.isShown($0) }
      for id in restored { try records.removeProblems(.editOfDeletedRecord, with: id) }
      return Set(restored)
    }
    // Another record has brought them back, with their edits.
    guard !restored.isEmpty else { return }
    report.removeProblems {
      $0.kind == .editOfDeletedRecord && $0.record.map(restored.contains) == true
    }
  }

  private func takeRecords(_ report: inout ModelReport, _ taking: inout Taking) async throws {
    let check = RecordCheck(schema: schema)
    while true {
      // Those that are not taken come again each time.
      let limit = options.batchSize + taking.refused.count + taking.exhausted
      let batch = try await ask("recordsToUpload") { try await $0.recordsToUpload(limit: limit) }
      let refusals = taking.refused.count
      var fresh: [ModelRecord.ID: ModelRecord] = [:]
      for record in batch where taking.refused[record.id] != record {
        if let problem = check.problem(with: record) {
          report.add(problem)
          taking.refused[record.id] = record
        } else if let other = fresh[record.id] {
          report.add(
            .reportedTwice, record.id,
            "The adapter reported the record twice in one batch"
              + (other == record ? "." : ", with different values. The last ones count."),
            "Report each record once in “recordsToUpload”.")
          fresh[record.id] = record
        } else if taking.records[record.id] != record,
          taking.counts[record.id, default: 0] < Self.greatestTakes
        {
          fresh[record.id] = record
        }
      }
      // Behind those that are refused there may be others.
      if fresh.isEmpty, taking.refused.count > refusals { continue }
      guard !fresh.isEmpty else {
        for record in batch where taking.records[record.id] == record {
          report.add(
            .acknowledgedBefore, record.id,
            "The adapter reported the record again, unchanged, after it was acknowledged.",
            "Note in “didUpload” that the record is reported.")
        }
        return
      }
      let records = fresh.values.sorted { $0.id < $1.id }
      let names = records.map(\.id)
      try await movePosition(&taking.moves)
      let preference = taking.preference
      try await write(&report, preference: preference, edited: &taking.edited) { taking in
        try taking.take(records)
        try taking.records.setTaken(names, true)
      }
      report.takenRecords += records.count
      for record in records {
        taking.records[record.id] = record
        taking.counts[record.id, default: 0] += 1
        if taking.counts[record.id] == Self.greatestTakes { taking.exhausted += 1 }
      }
      taking.present.formUnion(names)
      taking.deletions.subtract(names)
      try await ask("didUpload") { try await $0.didUpload(records) }
      try await acknowledge(names)
    }
  }

  /// Returns the next deletions of the model.
  private func readDeletions(
    _ report: inout ModelReport, _ taking: inout Taking
  ) async throws -> [ModelRecord.ID] {
    let check = RecordCheck(schema: schema)
    while true {
      let limit = options.batchSize + taking.refusedDeletions.count
      let batch = try await ask("recordsMarkedForDeletion") {
        try await $0.recordsMarkedForDeletion(limit: limit)
      }
      let refusals = taking.refusedDeletions.count
      var fresh: Set<ModelRecord.ID> = []
      var void: Set<ModelRecord.ID> = []
      for id in batch where !taking.refusedDeletions.contains(id) {
        if let problem = check.problem(with: id) {
          // The mirror has no record of an unsuitable identity, now or later.
          if problem.kind == .unsuitableIdentity {
            if !taking.deletions.contains(id) { void.insert(id) }
            continue
          }
          report.add(problem)
          taking.refusedDeletions.insert(id)
        } else if taking.records[id] != nil,
          try await ask("hasRecord", { try await $0.hasRecord(id) })
        {
          report.add(
            .changedAndDeleted, id,
            "The adapter reported the record as changed and as deleted, and the model has it. It is not "
              + "deleted.", "Take the mark of the deletion away when a record is created again.")
          taking.refusedDeletions.insert(id)
        } else if !taking.deletions.contains(id) {
          fresh.insert(id)
        }
      }
      if !void.isEmpty {
        let ids = void.sorted()
        try await ask("didDelete") { try await $0.didDelete(ids) }
        taking.deletions.formUnion(void)
        if fresh.isEmpty { continue }
      }
      if fresh.isEmpty, taking.refusedDeletions.count > refusals { continue }
      if fresh.isEmpty {
        for id in batch where taking.deletions.contains(id) {
          report.add(
            .acknowledgedBefore, id,
            "The adapter reported the deletion again after it was acknowledged.",
            "Note in “didDelete” that the deletion is reported.")
        }
      }
      return fresh.sorted()
    }
  }

  /// Takes deletions, apart from those of records that the model has created again since they were read.
  ///
  /// - Parameter gone: Records that the model does not have any more, and did not mark.
  private func take(
    _ deletions: [ModelRecord.ID], gone: [ModelRecord.ID], _ report: inout ModelReport,
    _ taking: inout Taking
  ) async throws {
    let gone = gone.filter { !taking.present.contains($0) }
    var marked: [ModelRecord.ID] = []
    for id in deletions where !taking.present.contains(id) {
      // Was it changed so often that it is not taken any more?
      if taking.counts[id] == Self.greatestTakes,
        try await ask("hasRecord", { try await $0.hasRecord(id) })
      {
        continue
      }
      marked.append(id)
    }
    guard !marked.isEmpty || !gone.isEmpty else { return }
    try await movePosition(&taking.moves)
    let ids = marked
    try await write(&report, preference: nil, edited: &taking.edited) { taking in
      try taking.take(deletionsOf: ids + gone)
      try taking.records.setTaken(gone, false)
    }
    taking.deletions.formUnion(ids)
    for id in ids + gone { taking.records[id] = nil }
    guard !ids.isEmpty else { return }
    report.takenDeletions += ids.count
    try await ask("didDelete") { try await $0.didDelete(ids) }
  }

  /// Writes edits of the model in one transaction.
  ///
  /// - Parameters:
  ///   - edited: The records whose edits the call has written.
  ///   - untaken: The records with edits that cannot be taken, or not in this call.
  private func write(
    _ report: inout ModelReport, preference: MergedRows.Preference?, isLast: Bool = false,
    edited: inout Set<ModelRecord.ID>, untaken: Set<ModelRecord.ID> = [],
    _ body: @escaping @Sendable (inout RecordTaking) throws -> Void
  ) async throws {
    let schema = schema
    while true {
      let parked = try await parkedRecords()
      let former = edited
      let taken = try await database.write {
        database -> (report: ModelReport, edited: Set<ModelRecord.ID>)? in
        // An engine may have synchronized the store meanwhile.
        guard try ParkedRecords.version(database) == parked.version else { return nil }
        let records = MirrorRecords(database: database, schema: schema)
        var taking = RecordTaking(
          records, preference: preference, isLast: isLast,
          reportsReplaced: try preference != nil && Self.wasPutBack(records),
          parked: parked.ids, untaken: untaken)
        taking.edited = former
        try body(&taking)
        try records.add(taking.report.problems)
        return (taking.report, taking.edited)
      }
      guard let taken else { continue }
      for problem in taken.report.problems { report.add(problem) }
      edited = taken.edited
      return
    }
  }

  private func parkedRecords() async throws -> ParkedRecords {
    let version = try await database.read { try ParkedRecords.version($0) }
    if version != parked.version {
      parked = ParkedRecords(version: version, try await manager.parkedRows(), schema)
    }
    return parked
  }
}
