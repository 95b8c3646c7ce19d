import DocumentSync
import GRDB

/// Writes edits of the model into the tables of a mirror, in one transaction.
///
/// An edit is the difference between a record and what the model is known to have had, field by field. So a
/// value of another device that the model does not have yet stays, unless the edit is of the same field.
struct RecordTaking {
  typealias Fields = MirrorRecords.Fields

  /// What becomes of a record.
  private struct Plan {
    var record: ModelRecord
    /// The fields to write.
    var changes: Fields
    var isInsert = false
    /// Whether another device has deleted the record, or one without which it cannot be.
    var isGone = false
    /// Whether the row has to go, too.
    var isDeleted = false
    /// The records that come first, all of which are to be written, too.
    var parents: [ModelRecord.ID] = []
    /// The deleted records that come back.
    var restored: [ModelRecord.ID] = []
  }

  let records: MirrorRecords
  /// Whose values count if the mirror has a record that the model has never been known to have; `nil` for
  /// those of the model, since they are later.
  let preference: MergedRows.Preference?
  /// Whether no batch follows: a record to which another one refers, and which is not shown, does not come.
  let isLast: Bool
  /// Whether a record whose values give way to those of the document is reported.
  let reportsReplaced: Bool
  /// The records that the document has and does not show, since a value or a record keeps them from it.
  let parked: Set<ModelRecord.ID>
  /// The records with edits that cannot be taken, or not in this call.
  let untaken: Set<ModelRecord.ID>
  var report = ModelReport()
  /// The records whose edits were written.
  var edited: Set<ModelRecord.ID> = []
  /// The records that another one's unique value keeps from being written.
  private var refused: Set<ModelRecord.ID> = []

  var schema: ModelSchema { records.schema }

  init(
    _ records: MirrorRecords, preference: MergedRows.Preference?, isLast: Bool = false,
    reportsReplaced: Bool = false, parked: Set<ModelRecord.ID> = [],
    untaken: Set<ModelRecord.ID> = []
  ) {
    self.records = records
    self.preference = preference
    self.isLast = isLast
    self.reportsReplaced = reportsReplaced
    self.parked = parked
    self.untaken = untaken
  }

  // MARK: Records

  /// Takes records; after the last batch also those that wait since earlier.
  mutating func take(_ given: [ModelRecord]) throws {
    var pending: [ModelRecord.ID: ModelRecord] = [:]
    for record in try (isLast ? records.waiting() : []) + given { pending[record.id] = record }
    guard !pending.isEmpty else { return }
    // What the model has again is not deleted.
    if try !records.isEmpty(MirrorTables.deletions) {
      for record in given { try records.setDeletion(record.id, false) }
    }
    refused = []
    var clearsUniqueValues = false
    var written: Set<ModelRecord.ID> = []
    while true {
      let ready = try plans(for: pending.values.filter { !refused.contains($0.id) })
      let names = Set(ready.map(\.record.id))
      let waiting = try records.waitingNames().union(pending.keys).union(untaken)
        .subtracting(names)
      let failed = try write(ready, waiting, clearsUniqueValues: clearsUniqueValues)
      if failed.isEmpty {
        written = names
        break
      }
      // Two records may only have exchanged a unique value.
      if clearsUniqueValues { refused.formUnion(failed) } else { clearsUniqueValues = true }
    }
    for (id, record) in pending {
      try records.setWaiting(id, written.contains(id) ? nil : record.fields)
    }
  }

  /// The plans for records that can be written now, in an order in which they can be.
  private mutating func plans(
    for given: [ModelRecord]
  ) throws -> [Plan] {
    var plans: [ModelRecord.ID: Plan] = [:]
    for record in given { plans[record.id] = try plan(for: record) }
    // A record that is gone takes others along, which may take others along.
    var isComplete = false
    while !isComplete {
      isComplete = true
      for id in plans.keys.sorted() {
        guard var plan = plans[id], !plan.isGone else { continue }
        if try resolveReferences(of: &plan, plans) { isComplete = false }
        plans[id] = plan
      }
    }
    // What needs a record that does not come waits, and so does what needs that.
    isComplete = false
    while !isComplete {
      isComplete = true
      for (id, plan) in plans where plan.parents.contains(where: { plans[$0] == nil }) {
        plans[id] = nil
        isComplete = false
      }
    }
    // A record that comes back comes back with the edit that is taken with it.
    return RecordOrder.sorted(plans.mapValues { $0.parents + $0.restored }).compactMap { plans[$0] }
  }

  private mutating func plan(for record: ModelRecord) throws -> Plan {
    let id = record.id
    let shown = try records.shown(id)
    guard let known = try records.known(id) else {
      guard let shown else { return Plan(record: record, changes: record.fields, isInsert: true) }
      if preference == .document {
        if reportsReplaced, !difference(record, from: shown, shown: shown).isEmpty {
          report.add(
            .recordReplaced, id,
            "The model, which was put back or had another mirror, has other values of the record than the document. "
              + "The record gets those of the document.",
            "Edit it again if it was edited since.")
        }
        return Plan(record: record, changes: [:])
      }
      return Plan(record: record, changes: difference(record, from: shown, shown: shown))
    }
    guard let shown else {
      let isAlive = schema.type(id.type)?.merging == .editWins || parked.contains(id)
      guard isAlive, record.fields != known else {
        return Plan(record: record, changes: [:], isGone: true)
      }
      return Plan(record: record, changes: record.fields, isInsert: true)
    }
    return Plan(record: record, changes: difference(record, from: known, shown: shown))
  }

  private func difference(
    _ record: ModelRecord, from known: Fields, shown: Fields
  ) -> Fields {
    var changes: Fields = [:]
    for field in schema.type(record.id.type)?.fields ?? [] {
      let new = record[field.name]
      let old = known[field.name] ?? .null
      let present = shown[field.name] ?? .null
      guard new != old else { continue }
      if field.merging == .counter, let sum = Self.sum(present, plus: new, minus: old) {
        changes[field.name] = sum
      } else if new != present {
        changes[field.name] = new
      }
    }
    return changes
  }

  /// The value of a counter to which a difference is added.
  private static func sum(
    _ present: ModelValue, plus new: ModelValue, minus old: ModelValue
  ) -> ModelValue? {
    switch (present, new, old) {
    case (.integer(let present), .integer(let new), .integer(let old)):
      let difference = new.subtractingReportingOverflow(old)
      let sum = present.addingReportingOverflow(difference.partialValue)
      return difference.overflow || sum.overflow ? nil : .integer(sum.partialValue)
    case (.real(let present), .real(let new), .real(let old)):
      let sum = present + (new - old)
      return sum.isNaN ? nil : .real(sum)
    default: return nil
    }
  }

  /// Looks for the records to which a plan refers. Returns whether the plan has become another one.
  private func resolveReferences(
    of plan: inout Plan, _ plans: [ModelRecord.ID: Plan]
  ) throws -> Bool {
    plan.parents = []
    plan.restored = []
    for field in schema.type(plan.record.id.type)?.fields ?? [] {
      guard case .reference(_, let rule) = field.kind,
        case .reference(let parent)? = plan.changes[field.name]
      else { continue }
      let isShown = try records.isShown(parent)
      if isShown, plans[parent]?.isDeleted != true { continue }
      if let other = plans[parent], !other.isGone {
        if other.record.id != plan.record.id { plan.parents.append(parent) }
        continue
      }
      // Another device has deleted it, and the model does not know yet. But the model may have created it
      // again: then it comes with a later batch.
      guard
        try plans[parent] != nil
          || (isLast && !refused.contains(parent) && !parked.contains(parent)
            && records.former(parent) != nil)
      else {
        plan.parents.append(parent)
        continue
      }
      switch rule {
      case .setNull:
        plan.changes[field.name] = .null
        return true
      case .restrict: plan.restored.append(parent)
      case .cascade:
        plan.isGone = true
        plan.isDeleted = !plan.isInsert
        // What another of its references would bring back is not needed.
        plan.restored = []
        plan.parents = []
        return true
      }
    }
    return false
  }

  // MARK: Writing

  /// Writes all plans, or none if some are refused, which it returns.
  ///
  /// - Parameter waiting: The records whose edits wait.
  private mutating func write(
    _ plans: [Plan], _ waiting: Set<ModelRecord.ID>, clearsUniqueValues: Bool
  ) throws -> Set<ModelRecord.ID> {
    var failed: Set<ModelRecord.ID> = []
    var report = report
    let edited = edited.union(
      plans.lazy.filter { !$0.isGone && !$0.changes.isEmpty }.map(\.record.id))
    try records.database.inSavepoint {
      if clearsUniqueValues {
        for plan in plans where !plan.isInsert && !plan.isGone {
          let unique = uniqueFields(of: plan.record.id).filter { plan.changes[$0] != nil }
          try records.update(
            plan.record.id, Dictionary(uniqueKeysWithValues: unique.map { ($0, .null) }))
        }
      }
      func attempt(_ plan: Plan) throws {
        do {
          try records.database.inSavepoint {
            try write(plan, &report)
            return .commit
          }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
          failed.insert(plan.record.id)
        } catch is MirrorRecords.RowMissing {
          failed.insert(plan.record.id)
        }
      }
      for plan in plans where !plan.isDeleted { try attempt(plan) }
      // What was moved away from a record is not deleted with it.
      let deleted = Dictionary(
        uniqueKeysWithValues: plans.lazy.filter(\.isDeleted).map { ($0.record.id, $0) })
      guard !deleted.isEmpty else { return failed.isEmpty ? .commit : .rollback }
      let holders = try holders(of: waiting)
      let present = try edited.filter { try records.isShown($0) }
      for id in RecordOrder.sorted(deleted.mapValues(\.record.references)).reversed() {
        if holders.contains(id) {
          failed.insert(id)
        } else if let plan = deleted[id] {
          try attempt(plan)
        }
      }
      for id in present.sorted() where try !records.isShown(id) { reportEdit(of: id, &report) }
      return failed.isEmpty ? .commit : .rollback
    }
    if failed.isEmpty {
      self.report = report
      self.edited = edited
    }
    return failed
  }

  private func reportEdit(of deleted: ModelRecord.ID, _ report: inout ModelReport) {
    report.add(
      .editOfDeletedRecord, deleted,
      "The record was edited after another device had deleted it, or a record that it cannot be "
        + "without. It is deleted in the model.",
      "Create it again if it is needed.")
  }

  private func write(_ plan: Plan, _ report: inout ModelReport) throws {
    let id = plan.record.id
    for parent in plan.restored where try !records.isShown(parent) {
      try restore(parent)
      report.add(
        .deletionRefused, parent,
        "Another device deleted the record while this one made a reference to it. It is back.",
        "Delete it again once no record refers to it.")
    }
    if plan.isGone {
      if plan.isDeleted { try records.delete(id) }
      if try records.known(id) != plan.record.fields { reportEdit(of: id, &report) }
    } else if plan.isInsert {
      try records.insert(id, plan.changes)
    } else {
      try records.update(id, plan.changes)
    }
    try records.setKnown(id, plan.record.fields)
  }

  /// Brings a deleted record back as the model has it, without references to records that are gone.
  private func restore(_ id: ModelRecord.ID) throws {
    var fields = try records.former(id) ?? [:]
    for (name, value) in fields {
      if case .reference(let parent) = value, try !records.isShown(parent) { fields[name] = nil }
    }
    try records.insert(id, fields)
  }

  func uniqueFields(of id: ModelRecord.ID) -> [String] {
    (schema.type(id.type)?.fields ?? []).filter(\.isUnique).map(\.name)
  }

  // MARK: What waits

  /// Reports the records that wait.
  mutating func reportWaiting() throws {
    let waiting = try records.waitingNames()
    for record in try records.waiting() {
      var missing: [ModelRecord.ID] = []
      for parent in record.references where try !records.isShown(parent) { missing.append(parent) }
      if let parent = missing.min(), missing.allSatisfy(waiting.contains) {
        report.add(
          .parentMissing, record.id,
          "The record is not sent yet: it refers to \(parent), which is not sent yet either.",
          "Mend what keeps that record.")
      } else if let parent = missing.filter({ !waiting.contains($0) }).min() {
        report.add(
          .parentMissing, record.id,
          "The record is not sent yet: it refers to \(parent), which the model has not reported.",
          "Create that record, or remove the reference.")
      } else {
        let fields = uniqueFields(of: record.id).map { "“\($0)”" }.joined(separator: ", ")
        report.add(
          .uniqueValueTaken, record.id,
          "The record is not sent yet: another one has its value of a unique field: \(fields).",
          "Give one of the two another value.")
      }
    }
  }
}
