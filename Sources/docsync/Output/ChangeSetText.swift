import SyncModel

/// A change set for people: a line for each row.
struct ChangeSetText {
  private let set: SyncChangeSet
  private let names: ClientNames
  private let limit: Int

  init(_ set: SyncChangeSet, names: ClientNames, limit: Int) {
    self.set = set
    self.names = names
    self.limit = limit
  }

  /// Returns a heading, then a line for each row up to the limit.
  func lines(_ json: ChangeSetJSON) -> [String] {
    var lines = [
      "change set \(json.number) of \(names.label(set.header.client)): "
        + "\(counted(json.rowCount, "row")), \(byteText(json.byteCount))"
    ]
    if let range = set.timeRange {
      lines.append(
        "edited \(timeText(range.lowerBound.milliseconds)) to "
          + timeText(range.upperBound.milliseconds))
    }
    let others = set.dependencies.sorted.map { "\($0.entry.number) of \(names.label($0.client))" }
    if !others.isEmpty { lines.append("knows " + others.joined(separator: ", ")) }
    for table in json.tables {
      lines += ["", printable(table.table)]
      lines += table.rows.prefix(limit).map(line)
      if table.rows.count > limit {
        lines.append("  … and \(counted(table.rows.count - limit, "row")) more")
      }
    }
    return lines
  }

  /// Returns the begin and the end of an identity, as references to the row show it: rows that were
  /// there when syncing began differ at the end alone.
  private static func short(_ identity: String) -> String {
    identity.count > 17 ? "\(identity.prefix(8))…\(identity.suffix(8))" : identity
  }

  private func line(_ row: ChangeSetJSON.Row) -> String {
    let sign =
      switch row.action {
      case "insert": "+"
      case "delete": row.movedTo == nil ? "-" : ">"
      default: "~"
      }
    let key = row.key.values.map { "\(printable($0.key)) \($0.value.text)" }
    let values = row.values.values.map {
      "\(printable($0.key)) = \($0.value.text)"
    }
    var parts = ["  \(sign) \(key.joined(separator: ", "))"]
    if let identity = row.row { parts[0] += " [\(Self.short(identity))]" }
    if !values.isEmpty { parts.append(values.joined(separator: ", ")) }
    if let movedTo = row.movedTo { parts.append("its key is now [\(Self.short(movedTo))]") }
    return parts.joined(separator: "  ")
  }
}
