import DocumentSync
import SyncModel
import SyncStore

/// The checks of the invariants I1 to I6, which always hold, under every fault.
struct FleetInvariants {
  let world: FleetWorld
  var plan: FleetPlan { world.plan }

  init(_ world: FleetWorld) { self.world = world }

  // MARK: - After each synchronization

  /// Synchronizes a device and checks it. Returns whether there was nothing to do.
  func synchronize(
    _ device: FleetDevice, salt: UInt64, _ extent: SynchronizeOperation.Extent = .all,
    killedAfter point: Int? = nil
  ) async throws -> Bool {
    let isIdle: Bool
    let before = extent == .fetching ? world.memory.items : [:]
    let loose = plan.hasLooseTables ? try device.looseTables() : [:]
    // Migrations rename what the tables refer to, and then no program edits them.
    let hasMarks = !plan.schema.markTables.isEmpty && plan.migrations.isEmpty
    let marks = hasMarks ? try FleetMarks(device) : nil
    let hasDrafts = plan.schema.tables.contains { $0.columns.contains(where: \.isLocal) }
    let drafts = hasDrafts && plan.migrations.isEmpty ? try FleetDrafts(device) : nil
    do {
      isIdle = try await device.synchronize(salt: salt, extent, killedAfter: point)
    } catch let failure as FleetFailure {
      throw failure
    } catch let error {
      throw FleetFailure(throwing: error, "device \(device.number) cannot synchronize: ")
    }
    if plan.hasLooseTables {
      try device.checkLooseTables(since: loose, plan.schema, isWhole: extent == .all)
    }
    if extent == .fetching {
      guard world.memory.items == before else {
        throw FleetFailure(.half, "device \(device.number) has fetched, and written files")
      }
      // Nothing was applied, and the program's edits wait: no change set contains them yet.
      // A program that has foreign keys off may have left rows without their parents; a whole
      // synchronization hides such rows.
      if try device.mayShowOrphans || device.hasUnsealedEdits() {
        try checkIntegrity(device)
        try checkBookkeeping(device, allowing: .foreignKeysBroken)
        return false
      }
    }
    try bringUpToDate(device)
    try device.noteHeld { world.ledger.changeSets }
    try checkAgainstOracle(device)
    if let marks { try checkMarks(of: device, since: marks) }
    if let drafts { try checkDrafts(of: device, since: drafts) }
    // What is found by sending is not applied, so it has no reason to wait.
    if extent != .sending { try checkWaiting(device) }
    try checkFile(device)
    return isIdle
  }

  /// Checks that the rows of excluded tables have followed the rows to which they refer.
  private func checkMarks(of device: FleetDevice, since former: FleetMarks) throws {
    let expected = device.expected
    let hidden = expected?.hidden.filter { $0.value != .parentDeleted } ?? [:]
    let faults = try FleetMarks(device).faults(
      since: former, hidden: Set(hidden.keys).union(expected?.heldInvisibly ?? []))
    guard faults.isEmpty else {
      throw FleetFailure(.marks, "device \(device.number): \(faults.joined(separator: "\n  "))")
    }
  }

  /// Checks that the values of excluded columns have stayed with their rows.
  private func checkDrafts(of device: FleetDevice, since former: FleetDrafts) throws {
    let hidden = device.expected?.hidden ?? [:]
    let faults = try FleetDrafts(device).faults(
      since: former, hidden: &device.hiddenDrafts, isHidden: { hidden[$0] != nil }, device.state)
    guard faults.isEmpty else {
      throw FleetFailure(.drafts, "device \(device.number): \(faults.joined(separator: "\n  "))")
    }
  }

  /// Checks I3: the store is sound. Skips a store whose bytes have not changed since its last
  /// check.
  private func checkFile(_ device: FleetDevice) throws {
    let content = try device.content()
    guard device.checkedContent != content else { return }
    try checkConstraints(device)
    try checkBookkeeping(device)
    device.checkedContent = content
  }

  /// Checks I3: the bookkeeping is consistent and agrees with the tables.
  ///
  /// - Parameter kind: A finding that there may be besides.
  func checkBookkeeping(
    _ device: FleetDevice, allowing kind: VerifyReport.Finding.Kind? = nil
  ) throws {
    var options = StoreOptions()
    options.places = nil
    let found = try LocalStore.verify(at: device.store.path, options: options).report.findings
    guard
      found.allSatisfy({
        $0.kind == .rowWithoutKey || $0.kind == kind
          || $0.kind == .editTooLarge && device.limit != nil
          || $0.kind == .schemaUnsuitable && plan.hasLooseTables
          || $0.kind == .foreignKeysBroken && isMark($0.table)
      })
    else {
      throw FleetFailure(
        .bookkeeping,
        "device \(device.number):\n  " + found.map(\.description).joined(separator: "\n  "))
    }
  }

  private func checkIntegrity(_ device: FleetDevice) throws {
    let integrity = try device.program.rows("PRAGMA integrity_check").flatMap { $0 }
    guard integrity == [.text("ok")] else {
      throw FleetFailure(
        .integrity, "device \(device.number): \(integrity.map(\.sqlDescription))")
    }
  }

  /// Checks I3: the database is sound, and its own constraints hold.
  private func checkConstraints(_ device: FleetDevice) throws {
    try checkIntegrity(device)
    let broken = try device.program.rows("PRAGMA foreign_key_check").filter { row in
      guard case .text(let bytes) = row[0] else { return true }
      return !isMark(SQLName(String(decoding: bytes, as: UTF8.self)))
    }
    guard broken.isEmpty else {
      throw FleetFailure(
        .foreignKeys,
        "device \(device.number): \(broken.map { $0.map(\.sqlDescription).joined(separator: " ") })"
      )
    }
  }

  /// Whether a table is an excluded one with references. These may lead nowhere: a program may have
  /// foreign keys off, and what refers to a hidden row stays.
  private func isMark(_ table: SQLName?) -> Bool {
    plan.schema.markTables.contains { $0.name == table }
  }

  /// Merges the change sets that the device reports as applied into the oracle's state.
  private func bringUpToDate(_ device: FleetDevice) throws {
    var vector = try device.store.appliedVector().entries.mapValues(\.number)
    vector[device.client] = try device.store.head()?.number ?? 0
    for (client, number) in vector.sorted(by: { $0.key < $1.key }) {
      guard let author = world.ledger.device(of: client) else { continue }
      let known = device.state.vector[client] ?? 0
      guard number > known else { continue }
      for wanted in (known + 1)...number {
        let unpublished = try author == device.number ? device.sealedChangeSet(wanted) : nil
        guard let set = world.ledger.changeSet(wanted, of: author) ?? unpublished else {
          throw FleetFailure(
            .lost,
            "device \(device.number) has change set \(wanted) of device \(author), which was "
              + "never published")
        }
        try checkTables(of: set, by: author)
        device.state.merge(set)
        try checkCauses(of: set, vector, device)
      }
    }
  }

  /// Checks that a change set has only rows of tables that are synchronized.
  private func checkTables(of set: SyncChangeSet, by author: Int) throws {
    guard plan.hasLooseTables else { return }
    let schema = plan.schema.with(plan.migrations)
    for changes in set.tables where schema.table(changes.table) == nil {
      throw FleetFailure(
        .loose, "device \(author) has sent rows of \(changes.table), which has no key")
    }
  }

  /// Checks that a device has applied a change set only after the change sets that the author had
  /// applied.
  private func checkCauses(
    of set: SyncChangeSet, _ vector: [ClientIdentifier: UInt64], _ device: FleetDevice
  ) throws {
    for (client, entry) in set.dependencies.entries where vector[client] ?? 0 < entry.number {
      throw FleetFailure(
        .oracle,
        "device \(device.number) has applied change set \(set.header.number) of device "
          + "\(world.ledger.device(of: set.header.client) ?? 0) without what it depends on")
    }
  }

  /// Checks I2: a device shows the rows that the oracle computes from the applied change sets,
  /// whatever their order.
  private func checkAgainstOracle(_ device: FleetDevice) throws {
    let reader = try VisibleRows(device.program, schema: device.version)
    let read = try reader.read()
    let expected = try expectation(of: device, showing: read)
    let rows = reader.withStandIns(read, expecting: expected.visible, device.state)
    let differences = Self.differences(
      expected.visible, rows, schema: device.version.shared)
    if !differences.isEmpty {
      throw FleetFailure(
        .oracle,
        "device \(device.number):\n" + differences.joined(separator: "\n") + "\n"
          + stateDescription(device, of: differences))
    }
    device.shown = rows
    device.shownKeys = try reader.declaredKeys()
    device.leave = EditCheck.Leave()
    device.arrived = [:]
    device.hasDropped = false
    device.onlyRenamed = []
    try device.moves.clear()
    try checkParked(device, expected)
  }

  /// Returns the rows that a device must show. A recreated table shows uncaptured edits that could
  /// not be sealed until the changes of other devices arrive.
  private func expectation(
    of device: FleetDevice, showing rows: [OracleKey: [SQLName: Value]]
  ) throws -> Materialization {
    func materialize(_ state: LogicalState) throws -> Materialization {
      try Materialization(of: state, schema: device.version.shared, scratch: device.scratch)
    }
    var state = device.stateWithHeld
    let expected = try device.expected ?? materialize(state)
    device.expected = expected
    device.noteUnsettled()
    for (key, actions) in device.unsettled where rows[key] != expected.visible[key] {
      // The store does know the deletion of a row that other devices have only edited.
      if rows[key] == nil, actions == [.update] { continue }
      state.overwrite(key, with: rows[key])
    }
    return device.unsettled.isEmpty ? expected : try materialize(state)
  }

  /// Returns a line for each row in which the oracle and a device differ.
  static func differences(
    _ expected: [OracleKey: [SQLName: Value]], _ shown: [OracleKey: [SQLName: Value]],
    schema: FleetSchema
  ) -> [String] {
    Set(expected.keys).union(shown.keys).sorted().compactMap { key in
      guard let shown = shown[key] else {
        return "  \(key): the oracle shows \(text(expected[key] ?? [:])), the device nothing"
      }
      guard let expected = expected[key] else {
        return "  \(key): the oracle shows nothing, the device \(text(shown))"
      }
      let table = schema.table(key.table)
      let isEqual = shown.allSatisfy { name, value in
        // A column that is only a part of the identity has no cell.
        if let table, let position = table.position(of: name),
          table.isPureIdentity(position, in: schema)
        {
          return true
        }
        return value == expected[name] ?? .null
      }
      return isEqual
        ? nil : "  \(key): the oracle shows \(text(expected)), the device \(text(shown))"
    }
  }

  private static func text(_ values: [SQLName: Value]) -> String {
    values.sorted { $0.key < $1.key }.map { "\($0)=\($1.sqlDescription)" }
      .joined(separator: " ")
  }

  /// Returns rows as text, a line for each.
  static func text(_ rows: [OracleKey: [SQLName: Value]]) -> String {
    rows.sorted { $0.key < $1.key }.map { "\($0): \(text($1))" }.joined(separator: "\n")
  }

  private func stateDescription(_ device: FleetDevice, of differences: [String]) -> String {
    let state = device.stateWithHeld
    guard differences.count < 20, state.rows.count < 30 else { return "" }
    return state.rows.sorted { $0.key < $1.key }.map { key, row in
      "  state of \(key): \(row.existence)\(stamp(row.existenceStamp))"
        + (row.moved.map { " moved to \($0.shortDescription)" } ?? "")
        + row.cells.sorted { $0.key < $1.key }.map {
          " \($0)=\($1.value.sqlDescription)\(stamp($1.stamp))"
        }.joined()
    }.joined(separator: "\n")
  }

  private func stamp(_ stamp: Stamp?) -> String {
    guard let stamp else { return "" }
    let device = world.ledger.device(of: stamp.client)
    return "@\(stamp.time.milliseconds).\(stamp.time.counter)" + (device.map { "/\($0)" } ?? "")
  }

  /// Checks I1 and I6: a row that exists and is not shown is parked with a reason, and so is a row
  /// that was edited later than it was deleted.
  private func checkParked(_ device: FleetDevice, _ expected: Materialization) throws {
    let parked = Set(
      try device.store.status().parked.map {
        let table = device.version.sharedName(of: $0.table)
        return OracleKey(
          table: table,
          identity: device.version.shared.table(table)?.formless($0.identity) ?? $0.identity)
      })
    // The program may have deleted an unsettled row: this is sealed when the changes of others have arrived.
    let unexplained = expected.hidden.filter {
      !parked.contains($0.key) && device.unsettled[$0.key] == nil
    }
    if let (key, reason) = unexplained.min(by: { $0.key < $1.key }) {
      throw FleetFailure(
        .unexplained,
        "device \(device.number): \(key) is not shown (\(reason)), and not among the parked rows")
    }
    let deleted = device.state.rows.filter { key, row in
      row.existence == .deleted && expected.visible[key] == nil
        && !expected.shownElsewhere.contains(key) && !parked.contains(key)
    }
    for (key, row) in deleted.sorted(by: { $0.key < $1.key }) {
      // A device only stores values of columns that it does not have.
      guard let deletion = row.existenceStamp, let table = device.version.shared.table(key.table),
        row.cells.contains(where: { $1.stamp > deletion && table.position(of: $0) != nil })
      else { continue }
      throw FleetFailure(
        .unexplained,
        "device \(device.number): \(key) was edited after it was deleted, and is not among the "
          + "parked rows")
    }
  }

  /// Checks I6: for every client of which a device knows unapplied change sets, it reports a reason
  /// to wait.
  private func checkWaiting(_ device: FleetDevice) throws {
    let applied = try device.store.appliedVector()
    let waiting =
      try device.lastReport.map { Set($0.waiting.filter { !$0.message.isEmpty }.map(\.client)) }
      ?? Set(device.store.waiting().filter { !$0.missing.isEmpty }.map(\.client))
    for (author, head) in knownHeads(device).sorted(by: { $0.key < $1.key }) {
      guard let client = world.devices[author]?.client, head > applied.number(of: client),
        !waiting.contains(client)
      else { continue }
      throw FleetFailure(
        .unexplained,
        "device \(device.number) has not applied everything of device \(author) and does not say "
          + "why")
    }
  }

  /// Returns the numbers of the last change sets of other devices that a device sees: with managers
  /// from the markers, otherwise from the change sets.
  private func knownHeads(_ device: FleetDevice) -> [Int: UInt64] {
    let visible = device.directory.isOpen ? world.ledger.files : Array(device.directory.seen)
    var heads: [Int: UInt64] = [:]
    for file in visible where file.author != device.number {
      guard let path = world.ledger.path(of: file) else { continue }
      let head = device.manager == nil ? file.number : FleetLedger.head(of: path)
      if let head { heads[file.author] = max(heads[file.author] ?? 0, head) }
    }
    return heads
  }
}
