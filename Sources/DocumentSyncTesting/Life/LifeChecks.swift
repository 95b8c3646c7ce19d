import Foundation
import SyncModel

/// The checks of a store at the end.
struct LifeChecks {
  let world: LifeWorld
  let device: LifeDevice
  let hasBadClocks: Bool

  func run() throws {
    let program = try FleetSQLite(device.path)
    try checkIntegrity(program)
    try device.checkMigrations(program)
    let notes = try texts(program, "SELECT id, body, shared FROM note")
    let bodies = Dictionary(
      notes.map { ($0[0] ?? "", $0[1] ?? "") }, uniquingKeysWith: { first, _ in first })
    let items = Set(try texts(program, "SELECT token FROM item").compactMap { $0[0] })
    let edits = world.ledger.edits
    let alive = world.devices.values.reduce(into: Set<Int>()) { $0.formUnion($1.log) }
    let deleted = world.ledger.deletedNotes
    var last: [String: [String]] = [:]
    var possible: [String: Set<String>] = [:]
    var total: Int64 = 0
    for (index, edit) in edits.enumerated() where edit.isPublished || alive.contains(index) {
      if edit.isUncertain, !alive.contains(index) {
        if case .own(let id) = edit.subject { possible[id, default: []].insert(edit.token) }
        continue
      }
      switch edit.subject {
      case .own(let id): last[id, default: []].append(edit.token)
      case .row(let token, let note):
        if deleted.contains(note) { continue }
        guard bodies["n-" + token] != nil || items.contains(token) else {
          throw lost("the row of \(token) is not there")
        }
      case .deletion(let id):
        guard bodies[id] == nil || edit.isUnknownToCopy else {
          throw lost("\(id) is there again, which was deleted")
        }
      case .tally: total += edit.amount
      case .shared: break
      }
    }
    for (id, tokens) in last.sorted(by: { $0.key < $1.key }) {
      guard let body = bodies[id],
        (hasBadClocks ? tokens.contains(body) : tokens.last == body)
          || possible[id]?.contains(body) ?? false
      else { throw lost("\(id) is \(bodies[id] ?? "not there") instead of \(tokens.last ?? "")") }
    }
    try checkShared(notes)
    if case .integer(let shown)? = try program.rows("SELECT n FROM tally WHERE name = 'all'")
      .first?.first, shown != total, !world.ledger.isTallyUncertain
    {
      throw lost("the counter is \(shown) instead of \(total)")
    }
    let local = try texts(program, LifeDevice.localRows(program))
    let tokens = Set(local.compactMap { $0[0] })
    if let token = device.localTokens.first(where: { !tokens.contains($0) }) {
      throw lost("\(token), which stays here, is gone")
    }
    guard local.count == device.localTokens.count else {
      throw lost("\(local.count) rows stay here instead of \(device.localTokens.count)")
    }
  }

  /// Throws if a cell that all devices edit has a value that no device has written.
  private func checkShared(_ notes: [[String?]]) throws {
    let written = Set(
      world.ledger.edits.compactMap { edit -> String? in
        if case .shared(let note) = edit.subject { note + " " + edit.token } else { nil }
      })
    for note in notes {
      guard let id = note[0], let shared = note[2] else { continue }
      if !written.contains(id + " " + shared) { throw lost("\(id) has \(shared)") }
    }
  }

  private func checkIntegrity(_ program: FleetSQLite) throws {
    let integrity = try texts(program, "PRAGMA integrity_check").compactMap { $0[0] }
    if integrity != ["ok"] {
      throw FleetFailure(.integrity, "device \(device.number): \(integrity)")
    }
    if try !program.rows("PRAGMA foreign_key_check").isEmpty {
      throw FleetFailure(.foreignKeys, "device \(device.number)")
    }
  }

  /// Throws if a store that has left still contains anything of ours.
  static func checkThatNothingIsLeft(_ path: String) throws {
    let names = try FleetSQLite(path).rows(
      "SELECT name FROM sqlite_schema WHERE name LIKE '%docsync%' OR sql LIKE '%docsync%'")
    if !names.isEmpty { throw FleetFailure(.unexplained, "left behind: \(names)") }
  }

  private func lost(_ what: String) -> FleetFailure {
    FleetFailure(.lost, "device \(device.number): \(what)")
  }

  private func texts(_ program: FleetSQLite, _ sql: String) throws -> [[String?]] {
    try program.rows(sql).map { row in
      row.map {
        if case .text(let text) = $0 { String(decoding: text, as: UTF8.self) } else { nil }
      }
    }
  }
}
