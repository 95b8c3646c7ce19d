import DocumentSync
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// The devices of one history and the directory that they share.
final class FleetWorld {
  let plan: FleetPlan
  let memory: MemoryDirectory
  let ledger: FleetLedger
  private(set) var devices: [Int: FleetDevice] = [:]
  private let folder: String

  /// Creates the devices. The first puts a filled store under sync; the others join.
  init(_ plan: FleetPlan) async throws {
    self.plan = plan
    ledger = FleetLedger(schema: plan.schema.with(plan.migrations))
    memory = MemoryDirectory(seed: plan.seed)
    folder = try Self.makeFolder()
    do {
      try await makeDevices()
    } catch {
      try await close()
      throw error
    }
  }

  /// Closes the stores and removes all files.
  func close() async throws {
    for device in devices.values { try await device.close() }
    devices = [:]
    try FileManager.default.removeItem(atPath: folder)
  }

  private static func makeFolder() throws -> String {
    // In memory if the system has such a folder, since flushing to a disk takes long.
    let inMemory = "/dev/shm"
    let parent =
      FileManager.default.isWritableFile(atPath: inMemory) ? inMemory : NSTemporaryDirectory()
    let path =
      parent + "/docsync-fleet-\(ProcessInfo.processInfo.processIdentifier)-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  private func path(_ number: Int) -> String { "\(folder)/\(number).db" }

  // MARK: - Set-up

  private func makeDevices() async throws {
    guard let first = plan.devices.first else { return }
    try plan.schema.make(in: FleetSQLite(path(first)), filledBy: plan.start, plan.rowsWithoutKey)
    var state: LogicalState?
    let scratch = try OracleScratch(schema: plan.schema)
    for number in plan.devices {
      let clock = FleetClock(
        seed: plan.seed &+ UInt64(number) &* 0x9e37, time: 1_699_999_000_000)
      let directory = DelayedDirectory(
        memory.view(seed: plan.seed &+ UInt64(number)), ledger: ledger, device: number,
        kill: clock.kill)
      let manager =
        plan.usesManagers ? try await manager(number, clock: clock, directory) : nil
      let store = try manager?.store ?? directStore(number, clock: clock)
      ledger.register(store.binding.client, as: number)
      Self.setResolvers(of: store)
      if let policies = plan.policies[number] { try store.setPolicies { $0 = policies } }
      let start = try state ?? startState(of: store)
      state = start
      devices[number] = try FleetDevice(
        number: number, store: store, manager: manager, directory: directory, clock: clock,
        schema: plan.schema, scratch: scratch, state: start,
        limit: plan.circumstances.memoryBytes.map { $0 / 2 },
        reopen: { [path = path(number), plan] in
          try await Self.open(path, plan, clock: clock, directory)
        })
      devices[number]?.hasPolicies = plan.policies[number] != nil
      try await devices[number]?.keepJournal(plan.circumstances.journalModes[number] ?? "delete")
      if plan.hearsOfRows { try devices[number]?.hearOfRows() }
    }
    if plan.usesManagers {
      // Every device must know every other.
      for device in devices.values.sorted(by: { $0.number < $1.number }) {
        _ = try await device.synchronize(salt: plan.seed)
      }
    }
    for device in devices.values { device.directory.isOpen = false }
  }

  private static func setResolvers(of store: LocalStore) {
    for (name, resolver) in RandomMerging.resolvers { store.setResolver(name, resolver) }
  }

  /// Opens a store again after its process has ended.
  private static func open(
    _ path: String, _ plan: FleetPlan, clock: FleetClock, _ directory: DelayedDirectory
  ) async throws -> (LocalStore, DocumentSyncManager?) {
    let manager =
      plan.usesManagers
      ? try await DocumentSyncManager.open(
        storeAt: path, directory: directory,
        options: .init(environment: environment(plan, clock: clock))) : nil
    let store =
      try manager?.store ?? LocalStore.open(at: path, options: options(plan, clock: clock))
    setResolvers(of: store)
    return (store, manager)
  }

  private static func environment(_ plan: FleetPlan, clock: FleetClock) -> SyncEnvironment {
    var environment = SyncEnvironment()
    environment.store.schemaPause = .zero
    environment.now = { clock.time }
    environment.random = { clock.word() }
    environment.retries = .none
    environment.store.places = nil
    environment.store.onArchiveStep = { _ in clock.kill.pass() }
    plan.circumstances.apply(to: &environment)
    return environment
  }

  private static func options(_ plan: FleetPlan, clock: FleetClock) -> StoreOptions {
    var options = StoreOptions()
    options.now = { clock.time }
    options.random = { clock.word() }
    options.onArchiveStep = { _ in clock.kill.pass() }
    plan.circumstances.apply(to: &options)
    return options
  }

  private func startState(of store: LocalStore) throws -> LogicalState {
    let reader = try VisibleRows(FleetSQLite(store.path), schema: FleetVersion(plan.schema))
    return LogicalState(
      schema: plan.schema.with(plan.migrations), start: try reader.read(), origins: reader.origins)
  }

  private func manager(
    _ number: Int, clock: FleetClock, _ directory: DelayedDirectory
  ) async throws -> DocumentSyncManager {
    let environment = Self.environment(plan, clock: clock)
    if number == plan.devices.first {
      return try await DocumentSyncManager.create(
        storeAt: path(number), directory: directory, document: "fleet",
        options: .init(
          client: "device \(number)", configuration: plan.schema.configuration,
          environment: environment))
    }
    return try await DocumentSyncManager.join(
      storeAt: path(number), directory: directory,
      options: .init(client: "device \(number)", environment: environment))
  }

  private func directStore(_ number: Int, clock: FleetClock) throws -> LocalStore {
    let options = Self.options(plan, clock: clock)
    var random = SeededRandom(seed: plan.seed)
    let root = RootIdentifier.random(using: &random)
    let document = DocumentName.random(using: &random)
    let generation = IntegrityKey.random(using: &random)
    var own = SeededRandom(seed: plan.seed &+ UInt64(number))
    let binding = StoreBinding(
      application: "fleet", root: root, directory: folder, documentIdentifier: "fleet",
      document: document, generation: generation, generationOrdinal: 1,
      client: .random(using: &own), clientDescription: "device \(number)")
    guard let first = plan.devices.first, first != number, let source = devices[first] else {
      return try LocalStore.create(
        at: path(number), binding: binding, configuration: plan.schema.configuration,
        options: options)
    }
    _ = try source.store.snapshot(to: path(number))
    return try LocalStore.adopt(snapshotAt: path(number), binding: binding, options: options)
  }
}
