import DocumentSync
import GRDB

/// Whether the model is the one that the mirror knows, and what of the last import it has.
extension ModelMirror {
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
    // It may have been put back again before all of its records were taken.
    if phase != .forgotten || !isKnown {
      // Nothing is known any more of what the model has, or what was deleted from it.
      if let problem = try await begin(isPutBack: isOther) { report.add(problem) }
      try await ask("deleteChangeTracking") { try await $0.deleteChangeTracking() }
      // From now on, edits count: if the process ends, the tracking must not be deleted again.
      try await enter(.forgotten)
    }
    try await takeEdits(&report, preference: options.preference)
    try await enter(.introduced)
  }

  /// Begins to compare all records. Returns a problem if the model was put back.
  private func begin(isPutBack: Bool) async throws -> ModelReport.Problem? {
    let problem = ModelReport.Problem(
      kind: .modelPutBack, record: nil,
      message:
        "The model is not the one that was synchronized last: it was put back to an earlier state, or has "
        + "another mirror. All records are compared.",
      remedy: "Nothing has to be done. Records that were deleted since may be back.")
    let schema = schema
    try await database.write { database in
      let records = MirrorRecords(database: database, schema: schema)
      for table in [
        MirrorTables.known, MirrorTables.gone, MirrorTables.taken, MirrorTables.waiting,
        MirrorTables.deletions,
      ] { try records.clear(table) }
      try records.setState(State.position, nil)
      try records.setState(State.phase, Phase.begun.rawValue)
      if isPutBack {
        try records.setState(State.putBack, "1")
        try records.add([problem])
      }
    }
    return isPutBack ? problem : nil
  }

  /// Whether the model and the document have met.
  func isIntroduced() async throws -> Bool { try await phase() == .introduced }

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

  /// Whether all records are being compared since the model was put back, or had another mirror.
  static func wasPutBack(_ records: MirrorRecords) throws -> Bool {
    try records.state(State.putBack) != nil
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
