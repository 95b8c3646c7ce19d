import GRDB

/// The deletions of the model.
extension RecordTaking {
  /// Notes deletions, which ``finish()`` carries out once all records were taken.
  mutating func take(deletionsOf ids: [ModelRecord.ID]) throws {
    for id in ids {
      try records.setWaiting(id, nil)
      // What the model is not known to have had is a record of another device, of the same name.
      if try records.known(id) != nil { try records.setDeletion(id, true) }
    }
  }

  /// Takes the records that wait, and carries out deletions, until neither makes room for the other.
  ///
  /// A deletion that would take a record along whose edit waits is carried out when the edit can be taken: it
  /// may move the record elsewhere.
  mutating func finish() throws {
    var rest = try carryOut()
    guard !rest.isEmpty else { return }
    if !rest.held.isEmpty {
      // The records that hold them may wait for their unique values.
      try tryWithoutUniqueValues(of: rest.held)
      rest = try carryOut()
    }
    for id in rest.refused {
      try records.setDeletion(id, false)
      try records.setKnown(id, nil)
      report.add(
        .deletionRefused, id,
        "The record was deleted while another device made a reference to it. It comes back.",
        "Delete it again once no record refers to it.")
    }
  }

  /// Deletions that cannot be carried out.
  private struct Rest {
    /// Those that would take a record along whose edit waits.
    var held: [ModelRecord.ID] = []
    /// Those of records to which others refer.
    var refused: [ModelRecord.ID] = []

    var isEmpty: Bool { held.isEmpty && refused.isEmpty }
  }

  private mutating func carryOut() throws -> Rest {
    while true {
      try take([])
      var references: [ModelRecord.ID: [ModelRecord.ID]] = [:]
      for id in try records.deletions() {
        if let fields = try records.shown(id) {
          references[id] = ModelRecord(id: id, fields: fields).references
        } else if !parked.contains(id) {
          // Another device has deleted it.
          try end(id)
        }
      }
      guard !references.isEmpty else { return Rest() }
      let waiting = try records.waitingNames().union(untaken)
      let holders = try holders(of: waiting)
      var rest = RecordOrder.sorted(references).reversed().filter { !holders.contains($0) }
      let all = rest.count
      var count = all + 1
      while count != rest.count {
        count = rest.count
        rest = try rest.filter { try !delete($0) }
      }
      // What was deleted may have made room.
      if rest.count < all, !waiting.isEmpty { continue }
      return Rest(held: references.keys.filter(holders.contains).sorted(), refused: rest)
    }
  }

  /// The records that cannot be deleted without records whose edits wait.
  func holders(of waiting: Set<ModelRecord.ID>) throws -> Set<ModelRecord.ID> {
    var holders: Set<ModelRecord.ID> = []
    var path = Array(waiting)
    while let id = path.popLast() {
      guard let shown = try records.shown(id) else { continue }
      for field in schema.type(id.type)?.fields ?? [] {
        guard case .reference(_, let rule) = field.kind, rule != .setNull,
          case .reference(let parent)? = shown[field.name]
        else { continue }
        if holders.insert(parent).inserted { path.append(parent) }
      }
    }
    return holders
  }

  /// Takes what waits for unique values of records that are to be deleted, and carries out the deletions
  /// that this allows. The others keep their values.
  private mutating func tryWithoutUniqueValues(of held: [ModelRecord.ID]) throws {
    var former: [ModelRecord.ID: Fields] = [:]
    for id in held {
      let names = uniqueFields(of: id)
      let values = try records.shown(id)?.filter { names.contains($0.key) } ?? [:]
      if !values.isEmpty { former[id] = values }
    }
    while !former.isEmpty {
      let before = report
      var taken: [ModelRecord.ID] = []
      try records.database.inSavepoint {
        for (id, values) in former { try records.update(id, values.mapValues { _ in .null }) }
        _ = try carryOut()
        for (id, values) in former.sorted(by: { $0.key < $1.key }) where try records.isShown(id) {
          do {
            try records.database.inSavepoint {
              try records.update(id, values)
              return .commit
            }
          } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            taken.append(id)
          }
        }
        return taken.isEmpty ? .commit : .rollback
      }
      if taken.isEmpty { return }
      report = before
      for id in taken { former[id] = nil }
    }
  }

  private func delete(_ id: ModelRecord.ID) throws -> Bool {
    do {
      try records.database.inSavepoint {
        try records.delete(id)
        return .commit
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      return false
    }
    try end(id)
    return true
  }

  /// Notes that a deletion of the model is done.
  private func end(_ id: ModelRecord.ID) throws {
    try records.setDeletion(id, false)
    try records.setKnown(id, nil)
  }
}
