import DocumentSync
import SyncModel

/// A history as text that a person can read and repeat by hand.
struct FleetScript {
  let plan: FleetPlan
  let failure: FleetFailure

  var text: String {
    var lines =
      plan.schema.script(filledBy: plan.start + plan.rowsWithoutKey) + Self.lines(plan.policies)
    let devices = plan.devices.map { "\($0)" }.joined(separator: ", ")
    lines.append(
      "-- devices \(devices), "
        + (plan.usesManagers ? "synchronizing through managers" : "sealing and applying directly"))
    let circumstances = plan.circumstances.description
    if !circumstances.isEmpty { lines.append(circumstances) }
    if plan.hearsOfRows { lines.append("-- programs hear of changed rows") }
    lines += plan.migrations.enumerated().map { "-- migration \($0 + 1): \(text(of: $1))" }
    for (index, step) in plan.steps.enumerated() {
      lines += description(of: step).map { "\(index + 1). device \(step.device)\($0)" }
      if failure.step == index { lines.append("   ^ after this") }
    }
    if failure.step == nil {
      lines.append("-- then everything arrives, and all synchronize until they are at rest")
      if plan.undoes {
        lines.append("-- then a device repeats some of these edits, and they are undone")
      }
    }
    lines.append("\(failure.kind): \(failure.details)")
    return lines.joined(separator: "\n")
  }

  /// Returns a line for each device's policies.
  static func lines(_ policies: [Int: SyncPolicies]) -> [String] {
    policies.sorted { $0.key < $1.key }.map { device, policies in
      let others = policies.tables.sorted { $0.key < $1.key }.map { ", \($0.key) \($0.value)" }
      return "-- device \(device) decides by \(policies.document)\(others.joined())"
    }
  }

  private func text(of migration: FleetMigration) -> String {
    let version = FleetVersion(plan.schema.with(plan.migrations))
    switch migration {
    case .renameColumn(_, _, _, let device?), .renameTable(_, _, let device?):
      return (version.statement(migration, on: device) ?? "") + ", on device \(device) alone"
    case .changeForm(let change):
      return "\(change.column) of \(change.table) becomes \(change.declaredType)"
    default: return version.statement(migration, on: 0) ?? ""
    }
  }

  private func description(of step: FleetStep) -> [String] {
    switch step {
    case .edit(_, let edit):
      let mode =
        (edit.hasForeignKeys ? "" : " (foreign keys off)")
        + (edit.hasRecursiveTriggers ? " (recursive triggers)" : "")
      let statements =
        edit.statements.count == 1
        ? edit.statements : ["BEGIN"] + edit.statements + ["COMMIT"]
      return [" at \(edit.time)\(mode): \(statements.joined(separator: "; "));"]
    case .sync(_, let time, _): return [" at \(time): sync"]
    case .half(_, let time, _, let extent): return [" at \(time): \(extent.text)"]
    case .kill(_, let time, _, let point, let extent):
      return [
        " at \(time): \(extent.text), ends at point \(point), begins again and does the same"
      ]
    case .restart: return [" begins again"]
    case .migrate(_, let time): return [" at \(time): makes its next migration"]
    case .remake(_, let remake):
      let way = remake.dropsFirst ? "drops it first" : "under another name"
      return [" at \(remake.time): makes \(remake.table) again, \(way)"]
    case .arrivals(_, let percent, _): return [" sees \(percent) % of what is there"]
    case .see(_, let file): return [" sees \(file)"]
    case .hide: return [" no longer sees one of the files"]
    }
  }
}

extension SynchronizeOperation.Extent {
  fileprivate var text: String {
    switch self {
    case .all: "sync"
    case .fetching: "fetches changes"
    case .sending: "sends changes"
    }
  }
}

extension FleetSchema {
  /// Returns the schema and the statements that fill it, one statement on each line.
  func script(filledBy start: [String]) -> [String] {
    let filling = start.isEmpty ? [] : ["-- before syncing began:"] + start.map { $0 + ";" }
    return sql.map { $0 + ";" } + identities + undeclared + mergeTypes + filling
  }

  private var identities: [String] {
    let declared = tables.filter { $0.localKey != nil }.map { "\($0.name)=\($0.names($0.key))" }
    return declared.isEmpty ? [] : ["-- identities: \(declared.joined(separator: "; "))"]
  }

  private var undeclared: [String] {
    let references = tables.flatMap { table in
      table.references.filter { !$0.isEnforced }.map {
        "\(table.name).\(table.names($0.columns))=\($0.parent)"
      }
    }
    return references.isEmpty ? [] : ["-- references: \(references.joined(separator: "; "))"]
  }

  private var mergeTypes: [String] {
    let others = tables.filter { $0.mergeType != .latestWins }.map { "\($0.name) \($0.mergeType)" }
    let counters = tables.flatMap { table in
      table.columns.filter(\.isCounter).map { "\(table.name).\($0.name) counter" }
    }
    let types = (others + counters).joined(separator: ", ")
    let without = tables.filter { !$0.hasStandIns }.map(\.name).joined(separator: ", ")
    return (types.isEmpty ? [] : ["-- merge types: \(types)"])
      + (without.isEmpty ? [] : ["-- without stand-ins: \(without)"])
  }
}
