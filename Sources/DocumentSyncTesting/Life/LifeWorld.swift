import DocumentSync
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// The stores of one history, their machines, and the directory that they share.
final class LifeWorld {
  private static let day: Int64 = 24 * 60 * 60 * 1000

  let plan: LifePlan
  let memory: MemoryDirectory
  let ledger = LifeLedger()
  /// Checks the rows of the random tables.
  private(set) var oracle: LifeOracle?
  private(set) var devices: [Int: LifeDevice] = [:]
  private(set) var syncs = 0
  /// Whether everything is to arrive: whatever waits for permission is applied.
  var isSettling = false
  /// The number of accepted statements on the random tables.
  private(set) var statements = 0
  let folder: String
  private let random: FleetClock
  private var clocks: [Int: FleetClock] = [:]
  private var questions: [Int: LifeQuestions] = [:]
  /// The approximate time of correct clocks, in milliseconds since 1970.
  var time: Int64 = 1_700_000_000_000
  private var removed: Set<ClientIdentifier> = []
  /// The clients that other devices have retired as absent. Other devices may have removed their
  /// files, even if they are still members.
  private(set) var takenForAbsent: Set<ClientIdentifier> = []
  private var machines = 0
  private var paths = 0

  init(_ plan: LifePlan) async throws {
    self.plan = plan
    memory = MemoryDirectory(seed: plan.seed)
    random = FleetClock(seed: plan.seed, time: 0)
    let inMemory = "/dev/shm"
    let parent =
      FileManager.default.isWritableFile(atPath: inMemory) ? inMemory : NSTemporaryDirectory()
    folder =
      parent + "/docsync-life-\(ProcessInfo.processInfo.processIdentifier)-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    do {
      for number in 0..<plan.devices { try await join(number) }
      for device in devices.values { device.directory.isOpen = false }
    } catch {
      try await close()
      throw error
    }
  }

  /// Closes the stores and removes all files.
  func close() async throws {
    for device in devices.values { try await device.manager.close() }
    devices = [:]
    try FileManager.default.removeItem(atPath: folder)
  }

  // MARK: - Stores

  private func newPath(_ number: Int) -> String {
    paths += 1
    return "\(folder)/\(number)-\(paths).db"
  }

  func clock(_ number: Int) -> FleetClock {
    if let clock = clocks[number] { return clock }
    let clock = FleetClock(seed: plan.seed &+ UInt64(number), time: time)
    clocks[number] = clock
    return clock
  }

  private func environment(_ number: Int, machine: Int) -> SyncEnvironment {
    let clock = clock(number)
    let random = random
    var environment = SyncEnvironment()
    environment.store.schemaPause = .zero
    environment.now = {
      clock.time += 1
      return clock.time
    }
    environment.store.ignoreRealTime()
    environment.random = { random.word() }
    environment.retries = .none
    environment.parallelReads = 1
    if plan.hasLargeEdits { environment.store.limits.memoryBytes = RandomHeldEdits.memoryBytes }
    if let limit = plan.deletionLimit {
      environment.deletionLimit = limit.share
      environment.thresholds.deletionLimitRows = limit.leastRows
    }
    environment.store.places = StorePlaces(
      machine: "machine \(machine)", folder: tokenFolder(machine))
    if plan.asksQuestions {
      let questions = questions(number)
      environment.store.onStatement = { questions.pass($0) }
    }
    return environment
  }

  private func questions(_ number: Int) -> LifeQuestions {
    if let questions = questions[number] { return questions }
    let new = LifeQuestions()
    questions[number] = new
    return new
  }

  private func tokenFolder(_ machine: Int) -> String { "\(folder)/tokens-\(machine)" }

  private func tokenFile(_ device: LifeDevice) -> String {
    "\(tokenFolder(device.machine))/\(device.manager.binding.client).token"
  }

  /// Creates a database that is not under sync yet.
  private func makeStore(_ path: String, filledBy statements: [String]) throws -> FleetSQLite {
    let program = try FleetSQLite(path)
    for statement in LifeDevice.schema { try program.run(statement) }
    try plan.schema.make(in: program, filledBy: statements)
    return program
  }

  private func reopen(_ device: LifeDevice) async throws {
    device.manager = try await DocumentSyncManager.open(
      storeAt: device.path, directory: device.directory,
      options: .init(
        delegate: Returning(), environment: environment(device.number, machine: device.machine)))
    for (name, resolver) in RandomMerging.resolvers {
      device.manager.store.setResolver(name, resolver)
    }
  }

  /// Adds a device, and sets its resolvers and policies.
  private func add(_ device: LifeDevice) throws {
    let store = device.manager.store
    for (name, resolver) in RandomMerging.resolvers { store.setResolver(name, resolver) }
    if let policies = plan.policies[device.number] { try store.setPolicies { $0 = policies } }
    devices[device.number] = device
  }

  // MARK: - Steps

  /// Returns whether a step is possible now.
  func allows(_ step: LifeStep) -> Bool {
    switch step {
    case .join(let device), .joinMerging(let device, _): devices[device] == nil
    case .copy(let device, let to, _): devices[device] != nil && devices[to] == nil
    case .restore(let device), .rollBack(let device): devices[device]?.backup != nil
    case .leave(let device): devices[device] != nil && devices.count > 1
    case .retire(let device, let other, _):
      devices[device] != nil && devices[other] != nil && device != other
    default: devices[step.device] != nil
    }
  }

  func carryOut(_ step: LifeStep) async throws {
    guard allows(step) else { return }
    if case .join(let number) = step {
      try await join(number)
      return
    }
    if case .joinMerging(let number, let salt) = step {
      return try await joinMerging(number, salt: salt)
    }
    guard let device = devices[step.device] else { return }
    switch step {
    case .edit(_, let edit, let salt):
      try device.edit(
        edit, salt: salt, plan, ledger, clock: clock(device.number))
    case .work(_, let statements, let hasForeignKeys):
      self.statements += try device.work(
        statements, hasForeignKeys: hasForeignKeys, clock: clock(device.number))
    case .sync: _ = try await synchronize(device)
    case .half(_, let extent): try await synchronize(device, extent)
    case .arrive(_, let salt): device.directory.arrive(salt: salt)
    case .copy(_, let to, let isElsewhere):
      try await copy(device, to: to, isElsewhere: isElsewhere)
    case .move: try await move(device)
    case .backUp: try await backUp(device)
    case .restore: try await restore(device, withToken: false)
    case .rollBack: try await restore(device, withToken: true)
    case .upload: try await upload(device)
    case .vacuum: try await vacuum(device)
    case .retire(_, let other, let reason):
      try await retire(devices[other], by: device, reason)
    case .absence(_, let days, let retires):
      try await pass(days, withOnly: device, retires: retires)
    case .reset: try await reset(device)
    case .leave: try await leave(device)
    case .reopen:
      try await device.manager.close()
      try await reopen(device)
    case .clock(_, let milliseconds):
      clock(device.number).time = max(1_000_000_000_000, clock(device.number).time + milliseconds)
    case .update: try update(device, inOneStep: false)
    case .join, .joinMerging: break
    }
  }

  /// Updates the application of a device, as far as its database is older. Returns whether it was.
  @discardableResult
  func update(_ device: LifeDevice, inOneStep: Bool) throws -> Bool {
    try device.update(
      to: plan.migrations, inOneStep: inOneStep, clock: clock(device.number))
  }

  /// Synchronizes a device, and records that all its earlier edits are published.
  @discardableResult
  func synchronize(
    _ device: LifeDevice, _ extent: SynchronizeOperation.Extent = .all
  ) async throws -> SyncReport {
    let edits = device.log
    let client = device.manager.binding.client
    let isAllowed = plan.deletionLimit == nil || isSettling || syncs % 4 == 0
    let former = isAllowed ? nil : try device.notes()
    let report =
      plan.asksQuestions
      ? try await questions(device.number).during(device.manager) {
        try await device.run(extent, allowingDeletions: isAllowed)
      } : try await device.run(extent, allowingDeletions: isAllowed)
    syncs += 1
    // A device that takes over a whole store has its rows.
    if let limit = plan.deletionLimit, let former, report.rebootstrap == nil {
      try device.checkDeletions(since: former, limit)
    }
    // The device noticed another state of its store before it sealed.
    if report.incarnations.contains(where: {
      $0.ancestor == client && [.copied, .restored, .forked].contains($0.reason)
    }) {
      ledger.noteKnownToCopy(edits)
    }
    // When rows are merged, the document's counters win.
    if report.rebootstrap?.merged != nil { ledger.isTallyUncertain = true }
    if extent != .fetching { notePublished(edits, by: device) }
    return report
  }

  /// Records that edits of a device are in the directory.
  private func notePublished(_ edits: [Int], by device: LifeDevice) {
    let known = ledger.edits
    if removed.contains(device.manager.binding.client) {
      device.unaware.formUnion(edits.filter { !known[$0].isPublished })
    } else {
      device.unaware = []
    }
    device.sealed = edits.count
    ledger.notePublished(edits)
  }

  @discardableResult
  func join(_ number: Int) async throws -> LifeDevice {
    let directory = LateDirectory(memory.view(seed: plan.seed &+ UInt64(number)), ledger: ledger)
    machines += 1
    let environment = environment(number, machine: machines)
    let path = newPath(number)
    let manager: DocumentSyncManager
    if devices.isEmpty, memory.items.isEmpty {
      _ = try makeStore(path, filledBy: plan.start)
      manager = try await DocumentSyncManager.create(
        storeAt: path, directory: directory, document: "life",
        options: .init(
          client: "device \(number)", configuration: LifeDevice.configuration(plan.schema),
          delegate: Returning(), environment: environment))
      if !plan.schema.tables.isEmpty {
        oracle = try LifeOracle(schema: plan.schema, beginningWith: path)
      }
    } else {
      manager = try await DocumentSyncManager.join(
        storeAt: path, directory: directory,
        options: .init(client: "device \(number)", delegate: Returning(), environment: environment))
    }
    let device = LifeDevice(
      number: number, directory: directory, path: path, machine: machines, manager: manager)
    directory.arrive(salt: .max)
    directory.isOpen = memory.items.isEmpty
    try add(device)
    return device
  }

  /// Joins with existing rows. Some are in no other store, and have integer keys that other devices
  /// use for other rows; some are in the document.
  private func joinMerging(_ number: Int, salt: UInt64) async throws {
    let directory = LateDirectory(memory.view(seed: plan.seed &+ UInt64(number)), ledger: ledger)
    machines += 1
    let path = newPath(number)
    let program = try makeStore(path, filledBy: plan.rows(salt: salt))
    _ = try LifeDevice.update(
      program, to: Int(salt % UInt64(plan.migrations + 1)), inOneStep: true)
    let prefersDocument = salt % 3 > 0
    // In this case merging sets the counter to this store's value.
    if !prefersDocument { ledger.isTallyUncertain = true }
    var log: [Int] = []
    for count in 0..<Int(salt % 4) {
      log += try insertNote(count, of: number, by: program)
    }
    try program.run("INSERT INTO local VALUES ('local \(number)')")
    if plan.hasLooseTables { try LifeDevice.addLooseRow("loose \(number)", program) }
    if !plan.hasOpenPrograms { program.close() }
    let manager = try await DocumentSyncManager.join(
      storeAt: path, directory: directory,
      existing: .merge(prefer: prefersDocument ? .document : .local),
      options: .init(
        client: "device \(number)", delegate: Returning(),
        environment: environment(number, machine: machines)))
    let device = LifeDevice(
      number: number, directory: directory, path: path, machine: machines, manager: manager)
    if plan.hasOpenPrograms { log += try insertNote(4, of: number, by: program) }
    device.log = log
    device.localTokens = ["local \(number)"] + (plan.hasLooseTables ? ["loose \(number)"] : [])
    directory.isOpen = false
    directory.arrive(salt: .max)
    try add(device)
  }

  /// Inserts a note and an item that refers to it, as a program does. Returns the numbers of the
  /// edits.
  private func insertNote(_ count: Int, of number: Int, by program: FleetSQLite) throws -> [Int] {
    let token = "m\(number).\(count)"
    try program.run("INSERT INTO note (id, body, shared) VALUES ('n-\(token)', '\(token)', NULL)")
    try program.run(
      "INSERT INTO item SELECT ifnull(max(id), 0) + 1, 'n-\(token)', 'i\(token)' FROM item")
    return [token, "i" + token].map { subject in
      ledger.note(
        LifeLedger.Edit(subject: .row(token: subject, note: "n-\(token)"), token: subject))
    }
  }

  private func copy(_ device: LifeDevice, to number: Int, isElsewhere: Bool) async throws {
    try await device.manager.close()
    if device.hasUnsealedTally(ledger) { ledger.isTallyUncertain = true }
    let path = newPath(number)
    try FileManager.default.copyItem(atPath: device.path, toPath: path)
    try await reopen(device)
    if isElsewhere { machines += 1 }
    let machine = isElsewhere ? machines : device.machine
    let directory = LateDirectory(memory.view(seed: plan.seed &+ UInt64(number)), ledger: ledger)
    directory.isOpen = false
    clock(number).time = clock(device.number).time
    let copy = LifeDevice(
      number: number, directory: directory, path: path, machine: machine,
      manager: try await DocumentSyncManager.open(
        storeAt: path, directory: directory,
        options: .init(delegate: Returning(), environment: environment(number, machine: machine))))
    device.copied = device.log.count
    copy.log = device.log
    copy.sealed = device.sealed
    copy.localTokens = device.localTokens
    copy.heldNotes = device.heldNotes
    try add(copy)
  }

  private func move(_ device: LifeDevice) async throws {
    try await device.manager.close()
    let path = newPath(device.number)
    try FileManager.default.copyItem(atPath: device.path, toPath: path)
    try FileManager.default.removeItem(atPath: device.path)
    device.path = path
    try await reopen(device)
  }

  private func backUp(_ device: LifeDevice) async throws {
    try await device.manager.close()
    device.backup = LifeDevice.Backup(
      content: try Data(contentsOf: URL(fileURLWithPath: device.path)),
      token: (
        tokenFile(device), FileManager.default.contents(atPath: tokenFile(device))
      ),
      log: device.log, sealed: device.sealed, localTokens: device.localTokens,
      heldNotes: device.heldNotes)
    device.copied = device.log.count
    try await reopen(device)
  }

  private func restore(_ device: LifeDevice, withToken: Bool) async throws {
    guard let backup = device.backup else { return }
    try await device.manager.close()
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: device.path))
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: backup.content)
    try handle.close()
    if withToken {
      if let token = backup.token.content {
        try token.write(to: URL(fileURLWithPath: backup.token.client))
      }
      ledger.noteUncertain(device.unaware.subtracting(backup.log))
    }
    device.log = backup.log
    device.copied = backup.log.count
    device.sealed = backup.sealed
    device.localTokens = backup.localTokens
    device.heldNotes = backup.heldNotes
    if device.hasUnsealedTally(ledger) { ledger.isTallyUncertain = true }
    device.lineage += "r"
    try await reopen(device)
  }

  private func upload(_ device: LifeDevice) async throws {
    let edits = device.log
    try await device.manager.uploadWholeStore()
    notePublished(edits, by: device)
  }

  private func vacuum(_ device: LifeDevice) async throws {
    let edits = device.log
    _ = try await device.manager.vacuum()
    notePublished(edits, by: device)
  }

  func retire(
    _ other: LifeDevice?, by device: LifeDevice, _ reason: LifeStep.Retirement
  ) async throws {
    guard let other else { return }
    let edits = device.log
    let client = other.manager.binding.client
    do {
      switch reason {
      case .removed: try await device.manager.removeClient(client)
      case .removedByCommand: _ = try await device.manager.retire(.client(client, .removed))
      case .absent: _ = try await device.manager.retire(.client(client, .absent))
      }
      removed.insert(client)
      if reason == .absent { takenForAbsent.insert(client) }
    } catch let error as SyncError
      where error.code == .clientUnknown || error.code == .clientMissing
    {
      // The device does not know the client yet, or the client is already retired.
      return
    }
    notePublished(edits, by: device)
  }

  /// Advances the clocks of all devices by some days, on each of which only `device` synchronizes.
  private func pass(_ days: Int, withOnly device: LifeDevice, retires: Bool) async throws {
    for _ in 0..<days {
      time += Self.day
      for clock in clocks.values { clock.time += Self.day }
      _ = try await synchronize(device)
    }
    guard retires else { return }
    let edits = device.log
    let retired = try await device.manager.retire(.notSeen(for: .milliseconds(2 * Self.day)))
    removed.formUnion(retired)
    takenForAbsent.formUnion(retired)
    notePublished(edits, by: device)
  }

  private func reset(_ device: LifeDevice) async throws {
    // Devices whose edits have not arrived here add them to the new generation.
    let edits = device.log
    try await device.manager.reset()
    notePublished(edits, by: device)
  }

  private func leave(_ device: LifeDevice) async throws {
    let edits = device.log
    device.directory.isOpen = true
    _ = try await device.manager.leave(isConfirmed: true)
    ledger.notePublished(edits)
    try LifeChecks.checkThatNothingIsLeft(device.path)
    try await device.manager.close()
    devices[device.number] = nil
  }
}

/// A delegate that rejoins if the device was removed.
private struct Returning: SyncDelegate {
  func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
    question.possibleDecisions.contains(.rejoin) ? .rejoin : .stop
  }
}
