import DocumentSync
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// A device: its store, the program that edits the store, and its view of the shared directory.
final class FleetDevice {
  let number: Int
  private(set) var store: LocalStore
  /// The manager with which the device synchronizes, as apps do; `nil` if it seals and applies
  /// directly.
  private(set) var manager: DocumentSyncManager?
  let directory: DelayedDirectory
  let clock: FleetClock
  /// The connection of the program that edits the store and does not know about syncing.
  private(set) var program: FleetSQLite
  /// The schema after the migrations that the device has made.
  var version: FleetVersion { didSet { expected = nil } }
  /// The number of migrations that the device has made or skipped.
  var migrated = 0
  /// Whether the last migration since the last synchronization dropped a column or recreated a
  /// table.
  var hasDropped = false
  /// The tables that were renamed since the store last noticed its schema; `nil` if it was changed in
  /// other ways, too.
  var onlyRenamed: Set<SQLName>? = []
  /// The columns that were added since the last synchronization, by table, with their defaults.
  var arrived: [SQLName: [SQLName: Value]] = [:]
  /// The defaults of all columns that were added on this device.
  var defaults: [SQLName: [SQLName: Value]] = [:]
  /// The oracle's database for questions about single rows.
  var scratch: OracleScratch { didSet { expected = nil } }
  /// The record of keys that the program has changed since the last synchronization.
  private(set) var moves: MoveLog
  /// The state that the oracle has merged from the change sets applied on this device.
  var state: LogicalState { didSet { expected = nil } }
  /// What the oracle has computed from this state; `nil` if the state has changed since.
  var expected: Materialization?
  /// The bytes of values that a change set carries in a history with edits that are too large; `nil`
  /// in others.
  let limit: Int?
  /// Whether policies decide conflicts on the device.
  var hasPolicies = false
  /// The edits that the device kept back at its last synchronization, as change sets.
  var held: [SyncChangeSet] = [] { didSet { expected = nil } }
  /// The rows of which the device has kept back an edit after some synchronization.
  var everHeld: Set<OracleKey> = []
  /// The values of excluded columns of rows that are hidden.
  var hiddenDrafts: [OracleKey: FleetDrafts.Draft] = [:]
  /// The rows before the last synchronization, as programs had left them.
  private(set) var edited: [OracleKey: [SQLName: Value]] = [:]
  /// The rows shown after the last synchronization.
  var shown: [OracleKey: [SQLName: Value]]
  /// The integer keys that rows with declared columns had then.
  var shownKeys: [SQLName: [Int64: RowIdentity]]
  /// The edits since the last synchronization that need not be sealed.
  var leave = EditCheck.Leave()
  /// The tables whose uncaptured edits may never have been sealed, because other devices had edited
  /// the same rows. No journal of this device contains the values before them.
  var overwritten: Set<SQLName> = []
  /// The rows of such tables with changes of other devices that are not applied yet. The tables may
  /// show their uncaptured edits, although these are not sealed.
  private(set) var unsettled: [OracleKey: Set<RowAction>] = [:]
  /// The hash of the store's bytes at the last successful check.
  var checkedContent: ContentHash?
  /// The twin that runs the program's statements without bookkeeping and triggers of ours.
  private var twin: FleetTwin?
  private var schema: FleetSchema { version.shared }
  /// What its program hears of the rows that the store changes; `nil` if it does not listen.
  private(set) var told: ToldRows?
  private let reopen: Reopening
  /// The last own change set that was checked, and the applied change sets of other devices at that
  /// time.
  private var checked: (head: UInt64, applied: VersionVector)
  /// The last known own change set.
  private var lastHead: UInt64
  /// The last own change set that was sealed when the store noticed that its schema had changed.
  private var noticedHead: UInt64 = 0
  /// Whether rows may still be shown without their parents. A program that has foreign keys off
  /// leaves such rows. Where the store sealed them because it noticed that its schema had changed,
  /// only the next whole synchronization hides them.
  var mayShowOrphans: Bool { leave.wasEditedFreely && lastHead > checked.head }

  typealias Reopening = () async throws -> (LocalStore, DocumentSyncManager?)

  init(
    number: Int, store: LocalStore, manager: DocumentSyncManager?, directory: DelayedDirectory,
    clock: FleetClock, schema: FleetSchema, scratch: OracleScratch, state: LogicalState,
    limit: Int?, reopen: @escaping Reopening
  ) throws {
    self.reopen = reopen
    self.limit = limit
    checked = (try store.head()?.number ?? 0, try store.appliedVector())
    lastHead = checked.head
    self.number = number
    self.store = store
    self.manager = manager
    self.directory = directory
    self.clock = clock
    version = FleetVersion(schema)
    self.scratch = scratch
    self.state = state
    program = try Self.program(store.path, clock)
    moves = try MoveLog(program, schema: version)
    let reader = try VisibleRows(program, schema: version)
    shown = try reader.read()
    shownKeys = try reader.declaredKeys()
  }

  private static func program(_ path: String, _ clock: FleetClock) throws -> FleetSQLite {
    let program = try FleetSQLite(path)
    try program.override("julianday") { .real(clock.julianDay) }
    try program.override("randomblob") { .blob(clock.bytes(16)) }
    return program
  }

  var client: ClientIdentifier { store.binding.client }

  /// Returns the hash of the store's bytes, its write-ahead log included.
  func content() throws -> ContentHash {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: store.path))
    let log = store.path + "-wal"
    if FileManager.default.fileExists(atPath: log) {
      bytes += try Data(contentsOf: URL(fileURLWithPath: log))
    }
    return ContentHash(of: bytes)
  }

  func close() async throws {
    told?.close()
    if let manager {
      try await manager.close()
    } else {
      try store.close()
    }
  }

  /// Ends the process and starts it again. The program and its record of keys stay.
  func restart() async throws {
    let former = try FormerRows(program, version)
    let check = try editCheck()
    try await close()
    (store, manager) = try await reopen()
    try told?.listen(to: store)
    lastReport = nil
    try noteSealed(check, since: former)
  }

  /// Makes the store notice that its schema has changed.
  func noticeSchema() throws {
    let former = try FormerRows(program, version)
    let check = try editCheck()
    try told?.begin()
    _ = try store.status()
    try checkTold()
    onlyRenamed = []
    try noteSealed(check, since: former)
  }

  /// Checks the change sets that the store sealed when it noticed a change of its schema: they must
  /// contain the earlier edits. Where more is to be sealed, the check waits for that.
  private func noteSealed(
    _ check: EditCheck, since rows: FormerRows
  ) throws {
    let former = lastHead
    lastHead = try store.head()?.number ?? 0
    if lastHead > former { noticedHead = lastHead }
    guard lastHead > former, try !hasUnsealedEdits() else {
      return try noteChanges(since: rows)
    }
    var check = check
    try checkSealed(try changeSets(checked.head..<lastHead), &check, hasApplied: false)
    let reader = try VisibleRows(program, schema: version)
    shown = try reader.read()
    shownKeys = try reader.declaredKeys()
    try moves.clear()
  }

  /// Records the changes to rows that opening the store has made. Opening seals the edits before
  /// the change of the schema, whose effects on other rows are not edits.
  private func noteChanges(since former: FormerRows) throws {
    let reader = try former.naming(
      VisibleRows(program, schema: version), shown: shown.keys,
      keys: moves.numbers(besides: shownKeys))
    let now = try reader.read()
    let rows = reader.logical(former.tables)
    for (key, row) in rows {
      guard let new = now[key] else {
        shown[key] = nil
        continue
      }
      // Of a row that was inserted since, record only these changes.
      for (name, value) in new where row[name] != value { shown[key, default: [:]][name] = value }
    }
    for (key, row) in now where rows[key] == nil && state.rows[key] != nil { shown[key] = row }
  }

  /// Changes the store's journal mode to the one with this name in SQLite.
  func keepJournal(_ mode: String) async throws {
    guard try program.rows("PRAGMA journal_mode") != [[.text(Array(mode.utf8))]] else { return }
    // Leaving WAL requires that no other connection is open.
    try await beginAgain { path in
      let database = try FleetSQLite(path)
      defer { database.close() }
      _ = try database.rowsOnce("PRAGMA journal_mode = \(mode)")
    }
  }

  /// Ends the process and the program, calls `body`, which may change the files, and starts both
  /// again.
  private func beginAgain(_ body: (_ path: String) throws -> Void) async throws {
    let path = store.path
    program.close()
    try await close()
    try body(path)
    (store, manager) = try await reopen()
    try told?.listen(to: store)
    program = try Self.program(path, clock)
    moves = try MoveLog(program, schema: version)
    twin = nil
    lastReport = nil
  }

  /// Lets the program hear of the rows that the store changes.
  func hearOfRows() throws {
    let told = ToldRows()
    try told.listen(to: store)
    self.told = told
  }

  /// Checks what the store has told since the last call began.
  func checkTold() throws {
    guard let problems = try told?.end(), !problems.isEmpty else { return }
    throw FleetFailure(
      .told, "device \(number):\n  " + problems.joined(separator: "\n  "))
  }

  // MARK: - Editing

  /// Runs statements as a program does; returns the accepted ones.
  ///
  /// SQLite (3.40.1) can damage a table whose triggers replace the row that an upsert is about to
  /// update. Skips statements that damage the twin's tables.
  func edit(_ edit: FleetEdit) throws -> [String] {
    clock.time = edit.time
    clock.reseed(edit.salt)
    let twin = try currentTwin()
    let former = try twin.content()
    let expected = try twin.edit(edit)
    guard try twin.isSound() else {
      self.twin = nil
      return []
    }
    if !edit.hasForeignKeys { leave.wasEditedFreely = true }
    let isUpdate = edit.statements.allSatisfy {
      $0.hasPrefix("UPDATE ") && !$0.hasPrefix("UPDATE OR")
    }
    if edit.remade == nil, !isUpdate { leave.hasMoreThanUpdates = true }
    let outcome = try program.edit(edit)
    var differences = outcome.differences(from: expected)
    if differences.isEmpty {
      differences = try twin.differences(from: program)
      // SQLite itself (3.40.1) does not undo such a statement in a transaction if nothing else in
      // the statement can be refused.
      if !differences.isEmpty, outcome.hasReachedTriggerDepth {
        self.twin = nil
        return outcome.accepted
      }
    }
    // In SQLite itself, the order of visiting rows and the time of looking for referenced rows
    // depend on whether the table has triggers, whatever these do.
    if try !differences.isEmpty
      && (outcome.isRefusedByAnExpression(whereAlsoRefusedIn: expected)
        || twin.idleTwin(as: former).agrees(with: program, on: edit, outcome))
    {
      self.twin = nil
      return outcome.accepted
    }
    guard differences.isEmpty else {
      throw FleetFailure(
        .twin, "device \(number):\n  " + differences.joined(separator: "\n  "))
    }
    return outcome.accepted
  }

  /// Returns a twin: the tables in their present state without our triggers.
  func currentTwin() throws -> FleetTwin {
    if let twin, try !twin.isOutdated(program) { return twin }
    let twin = try FleetTwin(of: program, at: store.path)
    self.twin = twin
    return twin
  }

  /// Discards the twin, so that the next use creates another.
  func forgetTwin() { twin = nil }

  // MARK: - Synchronizing

  /// Synchronizes, and checks that no edit is missing from the sealed change sets. Returns whether
  /// there was nothing to do.
  ///
  /// - Parameter extent: Whether to make one half alone.
  /// - Parameter point: The point at which the process ends during an earlier attempt; `nil` for
  ///   none.
  func synchronize(
    salt: UInt64, _ extent: SynchronizeOperation.Extent = .all, killedAfter point: Int? = nil
  ) async throws -> Bool {
    clock.reseed(salt)
    let former = extent == .fetching ? try FormerRows(program, version) : nil
    var check = try editCheck()
    if limit != nil { edited = check.rows }
    if let point { try await synchronize(salt: salt, extent, endingAfter: point, check) }
    let before = try store.appliedVector()
    let isIdle = try await synchronizeOnce(salt: salt, extent, check)
    let applied = try store.appliedVector()
    let head = try store.head()?.number ?? 0
    let isWaiting = try extent == .fetching && hasUnsealedEdits()
    guard applied == before || extent != .sending && !isWaiting else {
      throw FleetFailure(
        .half,
        "device \(number) has applied change sets "
          + (extent == .sending ? "while it only sends" : "before it sealed its own edits"))
    }
    let hasOnlyNoticed =
      leave.wasEditedFreely && head > checked.head && applied == checked.applied
    if isWaiting || hasOnlyNoticed, let former {
      try noteSealed(check, since: former)
      return isIdle
    }
    try checkSealed(
      try changeSets(checked.head..<max(head, checked.head)), &check,
      hasApplied: applied != checked.applied)
    checked = (head, applied)
    lastHead = head
    return isIdle
  }

  private func editCheck() throws -> EditCheck {
    var leave = leave
    leave.hasPolicies = hasPolicies
    // What was too large to be sent may be inserted later.
    if limit != nil { leave.hasMoreThanUpdates = true }
    if limit != nil || !leave.remade.isEmpty || schema.tables.contains(where: \.canLoseKeys) {
      leave.saidByOthers = directory.saidByOthers(since: state.vector, schema: schema)
    }
    return try EditCheck(
      program, schema: version, shown: shown, keys: moves.numbers(besides: shownKeys),
      moves: moves.moves(), state: state, arrived: arrived, leave: leave)
  }

  /// Records the rows that are ``unsettled`` after a synchronization.
  func noteUnsettled() {
    guard !leave.remade.isEmpty || !unsettled.isEmpty else { return }
    let said = directory.saidByOthers(since: state.vector, schema: schema)
    unsettled = said.filter {
      leave.remade.contains($0.key.table) || unsettled[$0.key] != nil
    }
  }

  /// Whether the program has made edits that no change set contains yet. Those of a remade table are
  /// unknown until it is compared.
  func hasUnsealedEdits() throws -> Bool {
    try store.status().unsealedEdits > 0 || !store.remadeTables().isEmpty
  }

  /// Returns an own change set, whether or not it is published.
  func sealedChangeSet(_ number: UInt64) throws -> SyncChangeSet {
    try directory.published(number)
      ?? ChangeSetCodec.decode(try store.sealedBytes(number)).formless(schema)
  }

  private func synchronizeOnce(
    salt: UInt64, _ extent: SynchronizeOperation.Extent, _ check: EditCheck
  ) async throws -> Bool {
    try told?.begin()
    let isIdle: Bool
    if let manager {
      let report =
        switch extent {
        // At the end, whatever waits for permission is applied.
        case .all:
          try await manager.synchronize(allowingDeletions: directory.isOpen || salt % 4 == 0)
        case .fetching: try await manager.fetchChanges()
        case .sending: try await manager.sendChanges()
        }
      lastReport = report
      isIdle = report.isIdle
    } else {
      isIdle = try synchronizeDirectly(salt: salt, extent, check)
    }
    try checkTold()
    return isIdle
  }

  /// Begins to synchronize. The process ends at `point` and starts again.
  private func synchronize(
    salt: UInt64, _ extent: SynchronizeOperation.Extent, endingAfter point: Int,
    _ check: EditCheck
  ) async throws {
    let files = Locked<[String: Data]>([:])
    let path = store.path
    clock.kill.arm(after: point) {
      let content = StoreFiles.putAside(path)
      files.withLock { $0 = content }
    }
    var failure: (any Error)?
    do { _ = try await synchronizeOnce(salt: salt, extent, check) } catch { failure = error }
    guard clock.kill.disarm() else {
      if let failure { throw failure }
      return
    }
    if let failure = failure as? FleetFailure { throw failure }
    let kept = files.withLock { $0 }
    try await beginAgain { try StoreFiles.putBack(kept, $0) }
  }

  /// Returns the own change sets with the numbers after the lower bound, up to the upper bound.
  private func changeSets(_ numbers: Range<UInt64>) throws -> [SyncChangeSet] {
    try numbers.map { try sealedChangeSet($0 + 1) }
  }

  /// The last report of the manager.
  private(set) var lastReport: SyncReport?

  /// Seals, and checks the change sets before anything else happens.
  func sealAndCheck(_ check: EditCheck) throws {
    var check = check
    _ = try store.seal()
    let head = try store.head()?.number ?? 0
    // A process may have ended after it applied changes of other devices.
    guard try store.appliedVector() == checked.applied else { return }
    let sealed = try changeSets(checked.head..<max(head, checked.head))
    try checkSealed(sealed, &check, hasApplied: false)
  }

  private func checkSealed(
    _ sealed: [SyncChangeSet], _ check: inout EditCheck, hasApplied: Bool
  ) throws {
    check.hasApplied = hasApplied
    check.noticed = Int(max(noticedHead, checked.head) - checked.head)
    let reader = try VisibleRows(program, schema: version)
    let held = limit == nil ? [] : try heldChangeSets()
    var missing = try check.missing(from: sealed + held, reader)
    if limit != nil, !missing.isEmpty {
      check.journaled = try journaled()
      missing = try check.missing(from: sealed + held, reader)
    }
    // Changes of other devices may bring a row back.
    if !leave.wasEditedFreely, !hasApplied { missing += check.undone(in: try reader.read()) }
    let registers = TornRegisters(
      schema: schema, arrived: arrived.mapValues { Set($0.keys) })
    missing += sealed.flatMap { registers.found(in: $0) }
    guard missing.isEmpty else {
      throw FleetFailure(
        .lost, "device \(number) has not sealed:\n  " + missing.joined(separator: "\n  "))
    }
  }
}

extension FleetTwin {
  /// Returns whether an edit gives this twin the same results and the same rows as the program.
  fileprivate func agrees(
    with program: FleetSQLite, on edit: FleetEdit, _ outcome: EditOutcome
  ) throws -> Bool {
    try outcome.differences(from: self.edit(edit)).isEmpty && differences(from: program).isEmpty
  }
}
