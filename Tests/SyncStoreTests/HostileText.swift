import SyncModel

@testable import SyncStore

/// Change sets, and what devices make of them, as people read them.
enum HostileText {
  static func text(_ delivery: HostileFleet.Delivery) -> String {
    let set = delivery.file.changeSet
    let who = delivery.author.map { "device \($0 + 1)" } ?? "forged by \(name(set.header.client))"
    var lines = ["\(who), number \(set.header.number), places \(delivery.places.map { $0 >> 48 })"]
    for (client, entry) in set.dependencies.entries.sorted(by: { $0.key < $1.key }) {
      lines.append("  depends on \(name(client)) \(entry.number)")
    }
    for table in set.tables { lines += self.lines(LooseChanges(table)) }
    return lines.joined(separator: "\n")
  }

  private static func lines(_ table: LooseChanges) -> [String] {
    var lines = ["  \(table.table) \(table.identity) (\(table.keyColumns))"]
    for row in table.rows {
      let action = RowAction(rawValue: row.action).map { "\($0)" } ?? "?"
      var line = "    \(action) \(row.keys.map(text)) @\(text(row.time))"
      if let stamp = row.stamps[nil] { line += " said @\(text(stamp))" }
      for cell in row.cells {
        line += " \(table.columns[cell.column])=\(text(cell.value))"
        if let stamp = row.stamps[cell.column] { line += "@\(text(stamp))" }
      }
      if let destination = row.destination { line += " moved to \(text(destination))" }
      lines.append(line)
    }
    return lines
  }

  static func name(_ client: ClientIdentifier) -> String {
    String("\(client)".prefix(4))
  }

  private static func text(_ time: HybridTime) -> String {
    "\(time.milliseconds % 1_000_000).\(time.counter)"
      + (time.milliseconds < 1 << 40 ? "(old)" : "")
  }

  private static func text(_ stamp: Stamp) -> String {
    "\(text(stamp.time))/\(name(stamp.client))"
  }

  private static func text(_ value: Value) -> String {
    switch value {
    case .text(let bytes): "'\(String(decoding: bytes, as: UTF8.self))'"
    case .identity(let row): "=\(text(row))"
    case .null, .integer, .real, .blob: Program.text(value)
    }
  }

  private static func text(_ identity: RowIdentity) -> String {
    Program.text(.blob(identity.bytes))
  }

  /// What is known on one of the devices and not on all.
  static func differences(_ devices: [Device]) throws -> String {
    let all = try devices.map(lines)
    let common = all.reduce(Set(all[0])) { $0.intersection($1) }
    return zip(all.indices, all).flatMap { index, lines in
      lines.filter { !common.contains($0) }.map { "  device \(index + 1): \($0)" }
    }.joined(separator: "\n")
  }

  /// All rows and what is known of them.
  private static func lines(_ device: Device) throws -> [String] {
    try device.store.read { session in
      var lines: [String] = []
      for table in session.schema.tables {
        let names = table.columns.map { quoted($0.name) }.joined(separator: ", ")
        lines += try device.rows("SELECT \(names) FROM \(table.quotedName)").map {
          "\(table.name) shows \($0)"
        }
        lines += try device.values(
          "SELECT identity, reason, cells, moved FROM docsync_kept WHERE tbl = \(table.id)"
        ).map { row in
          var line = "\(table.name) keeps " + row.map(Program.text).joined(separator: " ")
          if case .blob(let bytes) = row[2] {
            for cell in try KeptCells.decode(bytes) {
              line += " \(table.columns[cell.column].name)=\(text(cell.value))"
            }
          }
          return line
        }
        try session.access(table.id).stamps.forEach { fingerprint, state in
          func stamp(_ local: LocalStamp) -> String { text(session.clients.stamp(local)) }
          var line =
            "\(table.name) \(fingerprint.high):\(fingerprint.low) \(state.existence) "
            + "@\(stamp(state.existenceStamp)) silence @\(stamp(state.erasureStamp))"
            + (state.isKept ? " kept" : "")
          for position in table.cellPositions {
            line += " \(table.columns[position].name)@\(stamp(state.stamp(of: position)))"
          }
          lines.append(line)
        }
      }
      return lines
    }
  }
}
