import DocumentSync
import GRDB

/// From the model to the mirror.
extension ModelMirror {
  /// How often one call takes a record that the application changes all the time.
  private static let greatestTakes = 3

  private enum State {
    static let position = "position"
    static let underWay = "underWay"
    static let phase = "phase"
    /// Whether the phases began since the model was put back, or had another mirror.
    static let putBack = "putBack"
  }

  /// How far the model and the document have come to know each other.
  private enum Phase: String {
    /// The adapter is to forget what it has reported.
    case begun
    /// It has forgotten; its records are being taken.
    case forgotten
    /// All records were taken.
    case introduced
  }

  /// Completes an import during which the process ended, and sees whether the model is the one that the mirror
  /// knows.
  func settle(_ report: inout ModelReport) async throws {
    let last = try await ask("lastImport") { try await $0.lastImport() }
    let schema = schema
    let isKnown = try await database.write { database in
      let records = MirrorRecords(database: database, schema: schema)
      if let last, try records.state(State.underWay) == last.position {
        try Self.note(last, records)
      } else if try records.state(State.underWay) != nil {
        // It was not persisted.
        try records.clear(MirrorTables.underWay)
        try records.setState(State.underWay, nil)
      }
      return try records.state(State.position) == last?.position
    }
    let phase = try await phase()
    if phase == .introduced, isKnown { return }
    // A new mirror may meet a model that another one knew.
    let isOther = phase == .introduced || (phase == nil && last != nil)
    if isOther {
      report.add(
        .modelPutBack, nil,
        "The model is not the one that was synchronized last: it was put back to an earlier state, or has "
          + "another mirror. All records are compared.",
        "Nothing has to be done. Records that were deleted since may be back.")
    }
    // It may have been put back again before all of its records were taken.
    if phase != .forgotten || !isKnown {
      // Nothing is known any more of what the model has, or what was deleted from it.
      try await begin(isPutBack: isOther)
      try await ask("deleteChangeTracking") { try await $0.deleteChangeTracking() }
      // From now on, edits count: if the process ends, the tracking must not be deleted again.
      try await enter(.forgotten)
    }
    try await takeEdits(&report, preference: options.preference)
    try await enter(.introduced)
  }

  /// Begins to compare all records.
  private func begin(isPutBack: Bool) async throws {
    let schema = schema
    try await database.write { database in
      let records = MirrorRecords(database: database, schema: schema)
      for table in [
        MirrorTables.known, MirrorTables.gone, MirrorTables.taken, MirrorTables.waiting,
      ] { try records.clear(table) }
      try records.setState(State.position, nil)
      try records.setState(State.phase, Phase.begun.rawValue)
      if isPutBack { try records.setState(State.putBack, "1") }
    }
  }

  private func phase() async throws -> Phase? {
    let schema = schema
    return try await database.read { database in
      try MirrorRecords(database: database, schema: schema).state(State.phase)
        .flatMap(Phase.init)
    }
  }

  private func enter(_ phase: Phase) async throws {
    let schema = schema
    try await database.write { database in
      let records = MirrorRecords(database: database, schema: schema)
      try records.setState(State.phase, phase.rawValue)
      if phase == .introduced { try records.setState(State.putBack, nil) }
    }
  }

  /// The position of the last import that the mirror has noted.
  func position() async throws -> String? {
    let schema = schema
    return try await database.read { database in
      try MirrorRecords(database: database, schema: schema).state(State.position)
    }
  }

  /// Notes what an import has given to the model.
  static func note(_ result: ModelImport, _ records: MirrorRecords) throws {
    for (id, fields) in try records.underWay() where !result.leftAlone.contains(id) {
      if let fields { try records.setKnown(id, fields) } else { try records.setGone(id) }
    }
    try records.clear(MirrorTables.underWay)
    try records.setState(State.underWay, nil)
    try records.setState(State.position, result.position)
  }

  /// Takes the edits of the model, batch by batch. Each batch is acknowledged after its commit.
  func takeEdits(
    _ report: inout ModelReport, preference: MergedRows.Preference? = nil
  ) async throws {
    var moves = Moves()
    try await takeUnacknowledged(&report, &moves)
    if try await ask("hasChanges", { try await $0.hasChanges() }) {
      let changed = try await takeRecords(&report, preference, &moves)
      try await takeDeletions(&report, changed, &moves)
    }
    // All parents have come that come, and a deletion may have made room.
    try await takeWaiting(&report, preference)
    try await forgetGone(&report)
    // A copy of the model that was made meanwhile does not have all of these edits.
    if moves.areEditsLater { _ = try await runImport { ([], []) } }
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

  /// Takes the deletions of records whose acknowledgement did not come: the model may have dropped them as if the
  /// mirror did not have them.
  private func takeUnacknowledged(
    _ report: inout ModelReport, _ moves: inout Moves
  ) async throws {
    let schema = schema
    let taken = try await database.read { database in
      try MirrorRecords(database: database, schema: schema).taken()
    }
    guard !taken.isEmpty else { return }
    var gone: [ModelRecord.ID] = []
    for id in taken where try await !ask("hasRecord", { try await $0.hasRecord(id) }) {
      gone.append(id)
    }
    if !gone.isEmpty { try await movePosition(&moves) }
    try await write(&report, preference: nil) { [gone] taking in
      try taking.take(deletionsOf: gone)
      try taking.records.setTaken([])
    }
  }

  /// Forgets what imports have deleted: every edit that was made before was taken.
  private func forgetGone(_ report: inout ModelReport) async throws {
    let schema = schema
    let edited = report.problems.filter { $0.kind == .editOfDeletedRecord }.compactMap(\.record)
    let restored = try await database.write { database in
      let records = MirrorRecords(database: database, schema: schema)
      if try !records.isEmpty(MirrorTables.gone) { try records.clear(MirrorTables.gone) }
      return Set(try edited.filter { try records.isShown($0) })
    }
    // Another record has brought them back, with their edits.
    guard !restored.isEmpty else { return }
    report.removeProblems {
      $0.kind == .editOfDeletedRecord && $0.record.map(restored.contains) == true
    }
  }

  /// Tries again to write the records that wait.
  private func takeWaiting(
    _ report: inout ModelReport, _ preference: MergedRows.Preference?
  ) async throws {
    try await write(&report, preference: preference, isLast: true) { try $0.take([]) }
  }

  /// Returns the records that were taken.
  private func takeRecords(
    _ report: inout ModelReport, _ preference: MergedRows.Preference?, _ moves: inout Moves
  ) async throws -> Set<ModelRecord.ID> {
    let check = RecordCheck(schema: schema)
    var taken: [ModelRecord.ID: ModelRecord] = [:]
    var refused: [ModelRecord.ID: ModelRecord] = [:]
    var counts: [ModelRecord.ID: Int] = [:]
    var exhausted = 0
    while true {
      // Those that are not taken come again each time.
      let limit = options.batchSize + refused.count + exhausted
      let batch = try await ask("recordsToUpload") { try await $0.recordsToUpload(limit: limit) }
      let refusals = refused.count
      var fresh: [ModelRecord.ID: ModelRecord] = [:]
      for record in batch where refused[record.id] != record {
        if let problem = check.problem(with: record) {
          report.add(problem)
          refused[record.id] = record
        } else if let other = fresh[record.id] {
          report.add(
            .reportedTwice, record.id,
            "The adapter reported the record twice in one batch"
              + (other == record ? "." : ", with different values. The last ones count."),
            "Report each record once in “recordsToUpload”.")
          fresh[record.id] = record
        } else if taken[record.id] != record, counts[record.id, default: 0] < Self.greatestTakes {
          fresh[record.id] = record
        }
      }
      // Behind those that are refused there may be others.
      if fresh.isEmpty, refused.count > refusals { continue }
      guard !fresh.isEmpty else {
        for record in batch where taken[record.id] == record {
          report.add(
            .acknowledgedBefore, record.id,
            "The adapter reported the record again, unchanged, after it was acknowledged.",
            "Note in “didUpload” that the record is reported.")
        }
        return Set(taken.keys)
      }
      let records = fresh.values.sorted { $0.id < $1.id }
      try await movePosition(&moves)
      try await write(&report, preference: preference) { taking in
        try taking.take(records)
        try taking.records.setTaken(records.map(\.id))
      }
      report.takenRecords += records.count
      for record in records {
        taken[record.id] = record
        counts[record.id, default: 0] += 1
        if counts[record.id] == Self.greatestTakes { exhausted += 1 }
      }
      try await ask("didUpload") { try await $0.didUpload(records) }
      try await write(&report, preference: nil) { try $0.records.setTaken([]) }
    }
  }

  private func takeDeletions(
    _ report: inout ModelReport, _ changed: Set<ModelRecord.ID>, _ moves: inout Moves
  ) async throws {
    let check = RecordCheck(schema: schema)
    var taken: Set<ModelRecord.ID> = []
    var refused: Set<ModelRecord.ID> = []
    while true {
      let limit = options.batchSize + refused.count
      let batch = try await ask("recordsMarkedForDeletion") {
        try await $0.recordsMarkedForDeletion(limit: limit)
      }
      let refusals = refused.count
      var fresh: Set<ModelRecord.ID> = []
      var void: Set<ModelRecord.ID> = []
      for id in batch where !refused.contains(id) {
        if let problem = check.problem(with: id) {
          // The mirror has no record of an unsuitable identity, now or later.
          if problem.kind == .unsuitableIdentity {
            if !taken.contains(id) { void.insert(id) }
            continue
          }
          report.add(problem)
          refused.insert(id)
        } else if changed.contains(id), try await ask("hasRecord", { try await $0.hasRecord(id) }) {
          report.add(
            .changedAndDeleted, id,
            "The adapter reported the record as changed and as deleted, and the model has it. It is not "
              + "deleted.", "Take the mark of the deletion away when a record is created again.")
          refused.insert(id)
        } else if !taken.contains(id) {
          fresh.insert(id)
        }
      }
      if !void.isEmpty {
        let ids = void.sorted()
        try await ask("didDelete") { try await $0.didDelete(ids) }
        taken.formUnion(void)
        if fresh.isEmpty { continue }
      }
      if fresh.isEmpty, refused.count > refusals { continue }
      guard !fresh.isEmpty else {
        for id in batch where taken.contains(id) {
          report.add(
            .acknowledgedBefore, id,
            "The adapter reported the deletion again after it was acknowledged.",
            "Note in “didDelete” that the deletion is reported.")
        }
        return
      }
      let ids = fresh.sorted()
      try await movePosition(&moves)
      try await write(&report, preference: nil) { try $0.take(deletionsOf: ids) }
      report.takenDeletions += ids.count
      taken.formUnion(ids)
      try await ask("didDelete") { try await $0.didDelete(ids) }
    }
  }

  /// Writes edits of the model in one transaction.
  private func write(
    _ report: inout ModelReport, preference: MergedRows.Preference?, isLast: Bool = false,
    _ body: @escaping @Sendable (inout RecordTaking) throws -> Void
  ) async throws {
    let schema = schema
    while true {
      let parked = try await parkedRecords()
      let taken = try await database.write { database -> ModelReport? in
        // An engine may have synchronized the store meanwhile.
        guard try ParkedRecords.version(database) == parked.version else { return nil }
        let records = MirrorRecords(database: database, schema: schema)
        var taking = RecordTaking(
          records, preference: preference, isLast: isLast,
          reportsReplaced: try preference != nil && records.state(State.putBack) != nil,
          parked: parked.ids)
        try body(&taking)
        return taking.report
      }
      guard let taken else { continue }
      for problem in taken.problems { report.add(problem) }
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

extension ModelMirror {
  /// Notes durably what the next import gives to the model.
  func begin(
    _ position: String, saving saved: [ModelRecord], deleting deleted: [ModelRecord.ID]
  ) async throws {
    let schema = schema
    try await database.write { database in
      let records = MirrorRecords(database: database, schema: schema)
      try records.clear(MirrorTables.underWay)
      for record in saved { try records.addUnderWay(record.id, record.fields) }
      for id in deleted { try records.addUnderWay(id, nil) }
      try records.setState(State.underWay, position)
    }
  }

  /// Notes durably what an import has given to the model.
  func end(_ result: ModelImport) async throws {
    let schema = schema
    try await database.write { database in
      try Self.note(result, MirrorRecords(database: database, schema: schema))
    }
  }
}
