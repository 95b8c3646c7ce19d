import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// One case of `Fixtures/Merge` being played, in one order of delivery.
final class MergeCaseRun {
  private let merged: MergeCase
  /// Which of the possible orders this is.
  private let order: Int
  private let scratch: Scratch
  private var devices: [(name: String, device: Device)] = []
  private var clocks: [String: Int64] = [:]
  private let world: World
  /// The codes of the warnings that were given on any device.
  private var warnings: Set<String> = []

  /// Above this many orders, so many are taken at random.
  private static let ordersAtMost = 24

  /// Plays the case in as many orders as it asks for.
  static func playAll(_ merged: MergeCase) throws {
    var order = 0
    var count = 1
    while order < count {
      count = try MergeCaseRun(merged, order: order).play()
      order += 1
    }
  }

  private init(_ merged: MergeCase, order: Int) throws {
    self.merged = merged
    self.order = order
    scratch = try Scratch()
    world = World(beginning: scratch.path + "/beginning.db")
  }

  private var context: Comment { "\(merged.name), order \(order)" }

  /// Plays, checks, and returns how many orders there are.
  private func play() throws -> Int {
    try makeDevices()
    for step in merged.steps { try take(step) }
    let count = merged.inEveryOrder ? try deliverInOrder() : 1
    try exchangeAll()
    try checkEnd()
    return count
  }

  // MARK: - Devices

  private static let letters = ["A", "B", "C", "D"]

  /// Clients are in order of their names.
  private static func client(_ name: String) -> ClientIdentifier {
    ClientIdentifier(bits: Bits128(high: UInt64(name.utf8.first ?? 0) << 56, low: 0))
  }

  private func device(_ name: String) throws -> Device {
    guard let found = devices.first(where: { $0.name == name }) else {
      throw MergeCaseError(description: "\(merged.name): there is no device \(name)")
    }
    return found.device
  }

  private var options: StoreOptions {
    var options = StoreOptions()
    options.now = { MergeCaseReader.noon }
    return options
  }

  private func makeDevices() throws {
    let path = scratch.path + "/A.db"
    let program = try Program(path)
    for sql in merged.schema { try program.run(sql) }
    let store = try LocalStore.create(
      at: path, binding: scratch.binding("A", client: Self.client("A")),
      configuration: merged.configuration, options: options)
    _ = try store.snapshot(to: world.beginning)
    try add("A", store)
    for name in Self.letters[1..<merged.devices] { try join(name, from: "A") }
  }

  private func join(_ name: String, from other: String) throws {
    let path = scratch.path + "/\(name).db"
    _ = try device(other).outgoing()
    _ = try device(other).store.snapshot(to: path)
    try add(
      name,
      try LocalStore.adopt(
        snapshotAt: path, binding: scratch.binding(name, client: Self.client(name)),
        options: options))
  }

  private func add(_ name: String, _ store: LocalStore) throws {
    let device = try Device(store: store, path: store.path)
    world.add(device)
    store.setResolver("sum") { values in
      guard case .integer(let base) = values.base, case .integer(let local) = values.local,
        case .integer(let remote) = values.remote
      else { throw MergeCaseError(description: "one of the values is no integer") }
      return .integer(local + remote - base)
    }
    store.setResolver("text") { _ in .text("a text") }
    if let policies = merged.policies[name] { try store.setPolicies { $0 = policies } }
    try device.setIdentities(letter: name.utf8.first ?? 0)
    if !merged.foreignKeys { try device.run("PRAGMA foreign_keys = OFF") }
    clocks[name] = MergeCaseReader.morning
    devices.append((name, device))
  }

  // MARK: - Steps

  private func take(_ step: MergeCase.Step) throws {
    switch step {
    case .edit(let name, let time, let sql, let isCaptured):
      if let time { clocks[name] = time }
      let device = try device(name)
      try device.setClock(milliseconds: clocks[name] ?? MergeCaseReader.morning)
      if isCaptured {
        for sql in sql { try device.run(sql) }
      } else {
        try device.runUncaptured(sql)
      }
    case .seal(let name):
      let device = try device(name)
      try world.compareRemadeTables(of: device)
      _ = try device.store.seal()
    case .deliver(let from, let to, let numbers):
      guard let numbers else {
        note(try device(to).receive(from: try device(from)))
        return
      }
      for number in numbers { try deliver(from: from, to: to, number: number) }
    case .exchange:
      try exchangeAll()
    case .join(let name, let other):
      try join(name, from: other)
    case .check(let name, let expectation):
      try check(name, expectation)
    }
  }

  private func deliver(from: String, to: String, number: UInt64) throws {
    let bytes = try device(from).store.sealedBytes(number)
    try device(from).store.markPublished(number)
    let received = ReceivedChangeSet(
      changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
    let receiver = try device(to)
    try world.compareRemadeTables(of: receiver)
    note(try receiver.store.apply([received]))
  }

  private func note(_ report: ApplyReport) {
    warnings.formUnion(report.warnings.map(\.code.rawValue))
  }

  /// Each device receives from all others until nothing is new.
  private func exchangeAll() throws {
    for _ in 0..<6 {
      var isDone = true
      for (_, device) in devices { _ = try device.outgoing() }
      for (_, device) in devices {
        for (_, other) in devices where other !== device {
          let report = try device.receive(from: other)
          note(report)
          if !report.applied.isEmpty { isDone = false }
        }
      }
      if isDone { return }
    }
    Issue.record("The devices do not come to rest: \(context)")
  }

  // MARK: - Orders

  /// Each device seals, and then receives what is new, change set by change
  /// set, in the order of this run. What one device receives has no influence
  /// on what another does, so that each goes through its own orders at once.
  private func deliverInOrder() throws -> Int {
    for (_, device) in devices { _ = try device.outgoing() }
    var count = 1
    for (name, device) in devices {
      var new: [(from: String, number: UInt64)] = []
      for (other, sender) in devices where other != name {
        let applied = try device.store.appliedVector().number(of: sender.store.binding.client)
        for sealed in try sender.store.sealedChangeSets() where sealed.number > applied {
          new.append((other, sealed.number))
        }
      }
      let orders = Self.orders(of: new.count)
      count = max(count, orders.count)
      for position in orders[order % orders.count] {
        try deliver(from: new[position].from, to: name, number: new[position].number)
      }
    }
    return count
  }

  private static func orders(of count: Int) -> [[Int]] {
    guard count > 4 else {
      return (0..<count).reduce([[]]) { orders, item in
        orders.flatMap { order in
          (0...order.count).map { Array(order[..<$0]) + [item] + Array(order[$0...]) }
        }
      }
    }
    var generator = SeededGenerator(seed: 1)
    return (0..<ordersAtMost).map { _ in Array(0..<count).shuffled(using: &generator) }
  }

  // MARK: - Checks

  private func checkEnd() throws {
    let digest = try devices[0].device.store.digest()
    var end = merged.expectation
    end.parked = end.parked ?? []
    end.waiting = end.waiting ?? 0
    for (name, device) in devices {
      let other = try device.store.digest()
      #expect(other.visible == digest.visible, "visible digest of \(name): \(context)")
      #expect(other.logical == digest.logical, "logical digest of \(name): \(context)")
      #expect(try device.rows("PRAGMA integrity_check") == ["ok"], "\(name): \(context)")
      #expect(try device.rows("PRAGMA foreign_key_check") == [], "\(name): \(context)")
      #expect(try device.sealsNothing(), "\(name) has something to say again: \(context)")
      try check(name, end)
    }
    try checkJournals()
  }

  private func checkJournals() throws {
    var found: [String: Set<String>] = [:]
    for (name, device) in devices {
      for (row, lost) in try device.conflictTexts() {
        found[row, default: []].formUnion(lost.map { [$0] } ?? [])
      }
      for conflict in try device.store.conflicts()
      where conflict.kind == .cell && conflict.rule == .latestWins {
        let isLocal = (conflict.remote.stamp ?? .zero) < (conflict.local.stamp ?? .zero)
        #expect(
          conflict.outcome == (isLocal ? .local : .remote), "winner on \(name): \(context)")
      }
    }
    var wanted = (merged.expectation.conflicts ?? []).map { conflict in
      Self.text(
        "\(conflict.row)\(conflict.column.map { ".\($0)" } ?? "") \(conflict.kind)",
        lost: Set(conflict.lost.map { Self.text([$0]) }))
    }
    var texts = found.map(Self.text)
    Self.dropOptional(&texts, &wanted)
    #expect(Self.condensed(texts, as: wanted) == wanted.sorted(), "journals: \(context)")
    var codes = Array(warnings)
    var wantedCodes = merged.expectation.warnings ?? []
    Self.dropOptional(&codes, &wantedCodes)
    #expect(codes.sorted() == wantedCodes.sorted(), "warnings: \(context)")
  }

  /// What ends with `?` is there in some orders only.
  private static func dropOptional(_ found: inout [String], _ wanted: inout [String]) {
    let optional = Set(wanted.filter { $0.hasSuffix("?") }.map { $0.dropLast() })
    wanted.removeAll { $0.hasSuffix("?") }
    found.removeAll { optional.contains($0[...]) }
  }

  private static func text(_ row: String, lost: Set<String>) -> String {
    lost.isEmpty ? row : "\(row) lost \(lost.sorted().joined(separator: ", "))"
  }

  private func check(_ name: String, _ expectation: MergeCase.Expectation) throws {
    let device = try device(name)
    let tables = expectation.rows.merging(expectation.rowsOn[name] ?? [:]) { $1 }
    for (table, rows) in tables.sorted(by: { $0.key < $1.key }) {
      let isQuery = table.lowercased().hasPrefix("select")
      let found = try device.values(isQuery ? table : "SELECT * FROM \(quoted(SQLName(table)))")
        .map(Self.text)
      let wanted = rows.map(Self.text)
      // A table's rows are in no order.
      #expect(
        isQuery ? found == wanted : found.sorted() == wanted.sorted(),
        "\(table) on \(name): \(context)")
    }
    if let parked = expectation.parked {
      let found = try device.parkedTexts()
      #expect(
        MergeCaseRun.condensed(found, as: parked) == parked.sorted(),
        "parked on \(name): \(context)")
    }
    if let waiting = expectation.waiting {
      #expect(try device.store.waiting().count == waiting, "waiting on \(name): \(context)")
    }
  }

  static func text(_ row: [Value]) -> String {
    row.map { value in
      if case .text(let text) = value { return "'\(String(decoding: text, as: UTF8.self))'" }
      return Program.text(value)
    }.joined(separator: ", ")
  }

  /// What is not expected one by one is counted, as `3 × table reason`.
  private static func condensed(_ found: [String], as wanted: [String]) -> [String] {
    guard wanted.contains(where: { $0.contains("×") }) else { return found.sorted() }
    let single = Set(wanted)
    var counts: [String: Int] = [:]
    for text in found where !single.contains(text) {
      let words = text.split(separator: " ")
      let table = words[0].prefix { $0 != "[" }
      counts["\(table) \(words.last ?? "")", default: 0] += 1
    }
    return (found.filter(single.contains) + counts.map { "\($1) × \($0)" }).sorted()
  }
}

extension Device {
  /// Runs SQL that is not captured, as if the file had changed without a
  /// trigger.
  fileprivate func runUncaptured(_ sql: [String]) throws {
    let triggers = try rows(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'docsync%'")
    try run("BEGIN")
    for trigger in triggers { try run("DROP TRIGGER \(trigger.prefix { $0 != "|" })") }
    for sql in sql { try run(sql) }
    for trigger in triggers { try run(String(trigger.drop { $0 != "|" }.dropFirst())) }
    try run("COMMIT")
  }

  /// The parked rows as `table[key] reason`.
  fileprivate func parkedTexts() throws -> [String] {
    let schema = try store.read { $0.schema }
    return try store.status().parked.map { row in
      "\(try Self.text(row.table, row.identity, schema)) \(row.reason.rawValue)"
    }
  }

  /// The entries of the journal as `table[key] kind`, for cells with the
  /// column and the value that lost.
  fileprivate func conflictTexts() throws -> [(row: String, lost: String?)] {
    let schema = try store.read { $0.schema }
    return try store.conflicts().map { conflict in
      let row = try Self.text(conflict.table, conflict.identity, schema)
      guard conflict.kind == .cell else { return ("\(row) \(conflict.kind.rawValue)", nil) }
      let lost: Value? =
        switch conflict.outcome {
        case .local: conflict.remote.cells?.first?.value
        case .remote: conflict.local.cells?.first?.value
        case .other, .both: nil
        }
      return ("\(row).\(conflict.column ?? "") cell", lost.map { MergeCaseRun.text([$0]) })
    }
  }

  private static func text(
    _ table: SQLName, _ identity: RowIdentity, _ schema: StoreSchema
  ) throws -> String {
    let count = schema.table(named: table)?.identityPositions.count ?? 0
    let key =
      count == 0
      ? surrogateText(identity)
      : try IdentityEncoding.decode(identity, count: count).map { value in
        if case .identity(let identity) = value { return surrogateText(identity) }
        return Program.text(value)
      }.joined(separator: ",")
    return "\(table)[\(key)]"
  }

  /// `A1` is the first identity that was drawn on A, `#7` that of the row
  /// that had the key 7 before syncing began.
  private static func surrogateText(_ identity: RowIdentity) -> String {
    guard let bits = Bits128(bytes: identity.bytes) else { return "?" }
    let letter = UInt8(bits.high >> 56)
    guard bits.high == UInt64(letter) << 56 else { return "#\(bits.low)" }
    return "\(String(UnicodeScalar(letter)))\(bits.low)"
  }
}
