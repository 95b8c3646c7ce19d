/// The search for a shorter history that fails in the same way.
struct Shrinker {
  private var plan: FleetPlan
  private var attempts: Int
  private var failure: FleetFailure?

  init(_ plan: FleetPlan, attempts: Int) {
    self.plan = plan
    self.attempts = attempts
  }

  /// Returns the shortest history found and its failure; `nil` if the history does not fail.
  mutating func shrink() async throws -> (FleetPlan, FleetFailure)? {
    let outcome = try await FleetRun.carryOut(plan)
    guard let first = outcome.failure else { return nil }
    failure = first
    // The same history with the names of the files that became visible, and without refused
    // statements.
    var named = plan
    named.steps = outcome.steps
    _ = try await tryInstead(named)
    var isShorter = true
    while isShorter, attempts > 0 {
      let before = size
      try await removeDevices()
      try await removeSteps()
      try await removeStatements()
      try await removeStart()
      try await simplifySchema()
      isShorter = size < before
    }
    return failure.map { (plan, $0) }
  }

  private var size: Int {
    plan.devices.count + plan.steps.count + plan.migrations.count + plan.start.count
      + plan.rowsWithoutKey.count
      + plan.schema.sql.joined().count
  }

  /// Replaces the history with another if that fails in the same way; returns whether it does.
  private mutating func tryInstead(_ other: FleetPlan) async throws -> Bool {
    guard attempts > 0 else { return false }
    attempts -= 1
    let outcome = try await FleetRun.carryOut(other)
    guard let found = outcome.failure, found.kind == failure?.kind else { return false }
    plan = other
    failure = found
    return true
  }

  private mutating func removeDevices() async throws {
    for device in plan.devices.reversed() where plan.devices.count > 1 {
      var other = plan
      other.devices.removeAll { $0 == device }
      other.steps.removeAll { $0.device == device }
      _ = try await tryInstead(other)
    }
  }

  private mutating func removeSteps() async throws {
    plan.steps = try await shortest(plan.steps) { steps, plan in plan.steps = steps }
  }

  private mutating func removeStart() async throws {
    plan.start = try await shortest(plan.start) { start, plan in plan.start = start }
    plan.rowsWithoutKey = try await shortest(plan.rowsWithoutKey) { rows, plan in
      plan.rowsWithoutKey = rows
    }
  }

  /// Tries to remove stretches of a list, long ones first; returns what is left.
  private mutating func shortest<Element>(
    _ list: [Element], _ set: ([Element], inout FleetPlan) -> Void
  ) async throws -> [Element] {
    var list = list
    var length = max(list.count / 2, 1)
    while !list.isEmpty {
      var position = 0
      while position < list.count {
        var shorter = list
        shorter.removeSubrange(position..<min(position + length, list.count))
        var other = plan
        set(shorter, &other)
        if try await tryInstead(other) { list = shorter } else { position += length }
      }
      if length == 1 { break }
      length /= 2
    }
    return list
  }

  private mutating func removeStatements() async throws {
    for index in plan.steps.indices {
      guard case .edit(let device, let edit) = plan.steps[index], edit.statements.count > 1
      else { continue }
      for position in edit.statements.indices.reversed() {
        guard case .edit(_, var shorter) = plan.steps[index], shorter.statements.count > 1
        else { continue }
        shorter.statements.remove(at: position)
        var other = plan
        other.steps[index] = .edit(device: device, shorter)
        _ = try await tryInstead(other)
      }
    }
  }

  /// Tries to remove tables, constraints and other parts. SQLite then refuses statements that name
  /// them.
  private mutating func simplifySchema() async throws {
    plan.migrations = try await shortest(plan.migrations) { $1.migrations = $0 }
    plan.schema.triggers = try await shortest(plan.schema.triggers) { $1.schema.triggers = $0 }
    try await simplifyCircumstances()
    for device in plan.policies.keys.sorted() {
      var other = plan
      other.policies[device] = nil
      _ = try await tryInstead(other)
    }
    for index in plan.schema.tables.indices
    where plan.schema.tables[index].mergeType != .latestWins {
      var other = plan
      other.schema.tables[index].mergeType = .latestWins
      _ = try await tryInstead(other)
    }
    // The statements that recreate a table contain its schema.
    if hasRemakes { return }
    for name in plan.schema.tables.map(\.name).reversed() where plan.schema.tables.count > 1 {
      var other = plan
      other.schema.tables.removeAll { $0.name == name }
      for index in other.schema.tables.indices {
        other.schema.tables[index].references.removeAll { $0.parent == name }
        other.schema.tables[index].forgetKeyReference()
      }
      for device in other.policies.keys { other.policies[device]?.set(nil, table: name) }
      // Remove its migrations and triggers, too.
      other.migrations.removeAll { $0.table == name || $0.parent == name }
      other.schema.triggers.removeAll { $0.hasBytes(" ON \(name.sql) ") }
      _ = try await tryInstead(other)
    }
    for index in plan.schema.tables.indices {
      for position in plan.schema.tables[index].references.indices.reversed() {
        var other = plan
        other.schema.tables[index].references.remove(at: position)
        other.schema.tables[index].forgetKeyReference()
        _ = try await tryInstead(other)
      }
      for position in plan.schema.tables[index].uniques.indices.reversed() {
        var other = plan
        other.schema.tables[index].uniques.remove(at: position)
        _ = try await tryInstead(other)
      }
      for position in plan.schema.tables[index].checks.indices.reversed() {
        var other = plan
        other.schema.tables[index].checks.remove(at: position)
        _ = try await tryInstead(other)
      }
      for position in plan.schema.tables[index].columns.indices {
        try await simplifyColumn(position, of: index)
      }
    }
  }

  /// Whether statements recreate tables.
  private var hasRemakes: Bool {
    plan.steps.contains {
      if case .edit(_, let edit) = $0 { edit.remade != nil } else { false }
    }
  }

  /// Tries to replace unusual settings with the usual ones, and kills with synchronizations.
  private mutating func simplifyCircumstances() async throws {
    for part in [
      { $0.borders = nil }, { $0.journalModes = [:] }, { $0.parallelReads = 1 },
      { $0.conflictEntries = nil }, { $0.memoryBytes = nil },
    ] as [(inout FleetCircumstances) -> Void] {
      var other = plan
      part(&other.circumstances)
      if other.circumstances != plan.circumstances { _ = try await tryInstead(other) }
    }
    for index in plan.steps.indices {
      guard case .kill(let device, let time, let salt, _, let extent) = plan.steps[index]
      else { continue }
      var other = plan
      other.steps[index] =
        extent == .all
        ? .sync(device: device, time: time, salt: salt)
        : .half(device: device, time: time, salt: salt, extent)
      _ = try await tryInstead(other)
    }
    try await simplifyHalves()
  }

  private mutating func simplifyHalves() async throws {
    if plan.hearsOfRows {
      var other = plan
      other.hearsOfRows = false
      _ = try await tryInstead(other)
    }
    for index in plan.steps.indices {
      guard case .half(let device, let time, let salt, _) = plan.steps[index] else { continue }
      var other = plan
      other.steps[index] = .sync(device: device, time: time, salt: salt)
      _ = try await tryInstead(other)
    }
  }

  private mutating func simplifyColumn(_ position: Int, of index: Int) async throws {
    let table = plan.schema.tables[index]
    if table.localKey != nil, table.key.contains(position) { return }
    for simpler in table.columns[position].simpler {
      var other = plan
      other.schema.tables[index].columns[position] = simpler
      _ = try await tryInstead(other)
    }
  }
}

extension FleetTable {
  /// Makes an integer key that no longer refers to another table a surrogate key.
  fileprivate mutating func forgetKeyReference() {
    guard hasRowidKey, !references.contains(where: { $0.columns.contains(key[0]) }) else { return }
    hasSurrogateKey = true
  }
}

extension FleetColumn {
  /// The variants of the column with one property less.
  fileprivate var simpler: [FleetColumn] {
    var found: [FleetColumn] = []
    if isNotNull {
      var column = self
      column.isNotNull = false
      found.append(column)
    }
    if isCounter {
      var column = self
      column.isCounter = false
      found.append(column)
    }
    if defaultValue != nil {
      var column = self
      column.defaultValue = nil
      found.append(column)
    }
    return found
  }
}
