import SyncModel
import SyncStore

/// A conflict of the journal, as printed.
struct ConflictJSON: Encodable, Sendable {
  /// One of the two sides.
  struct Side: Encodable, Sendable {
    var client: String?
    var clientName: String?
    /// When the client made the edit, in milliseconds since 1970.
    var editedMilliseconds: Int64?
    /// The values by column; `nil` for a deletion, or if there is no such
    /// side.
    var values: NamedValues<ValueJSON>?

    init(_ side: Conflict.Side, names: ClientNames) {
      client = side.stamp?.client.description
      clientName = side.stamp.flatMap { names.name($0.client) }
      editedMilliseconds = side.stamp?.time.milliseconds
      values = side.cells.map { cells in
        NamedValues(cells.map { ($0.column, ValueJSON($0.value)) })
      }
    }
  }

  /// What is shown now.
  struct Present: Encodable, Sendable {
    var isShown: Bool
    /// The side that is shown.
    var outcome: String?
    /// The value of the column.
    var value: ValueJSON?

    init(_ present: Conflict.Present) {
      isShown = present.isShown
      outcome = present.outcome?.rawValue
      value = present.value.map(ValueJSON.init)
    }
  }

  var number: Int64
  /// Whether the entry is in the file beside the database.
  var isArchived: Bool
  var kind: String
  var status: String
  var table: SQLName
  /// The identity in hexadecimal digits.
  var row: String
  var key: NamedValues<ValueJSON>
  var column: SQLName?
  var base: ValueJSON?
  var local: Side
  var remote: Side
  var rule: String
  var outcome: String
  var now: Present?
  /// Why the row is hidden.
  var reason: String?
  /// More, in words.
  var message: String?
  /// When this device noticed the conflict, in milliseconds since 1970.
  var noticedMilliseconds: Int64
  private let localWho: String
  private let remoteWho: String

  private enum CodingKeys: String, CodingKey {
    case number, isArchived, kind, status, table, row, key, column, base, local, remote, rule,
      outcome
    case now, reason, message, noticedMilliseconds
  }

  init(_ conflict: Conflict, names: ClientNames) {
    number = conflict.number
    isArchived = conflict.isArchived
    kind = conflict.kind.rawValue
    status = conflict.status.rawValue
    table = conflict.table
    row = hexadecimal(conflict.identity.bytes)
    key = NamedValues(conflict.key.map { ($0.column, ValueJSON($0.value)) })
    column = conflict.column
    base = conflict.base.map(ValueJSON.init)
    local = Side(conflict.local, names: names)
    remote = Side(conflict.remote, names: names)
    rule = conflict.rule.rawValue
    outcome = conflict.outcome.rawValue
    now = conflict.now.map(Present.init)
    let hidden = conflict.message.flatMap(ParkedRow.Reason.init(rawValue:))
    reason = hidden?.rawValue
    message = hidden?.text ?? conflict.message
    noticedMilliseconds = conflict.milliseconds
    localWho = conflict.local.stamp.map { names.label($0.client) } ?? ""
    remoteWho = conflict.remote.stamp.map { names.label($0.client) } ?? ""
  }

  /// The row: its table and key.
  private var rowText: String {
    let keys = key.values.map(\.value.text)
    return printable(table) + " " + (keys.isEmpty ? row : keys.joined(separator: ", "))
  }

  /// Returns a side in words.
  private func text(_ side: Side, _ text: (ValueJSON) -> String) -> String {
    guard let values = side.values else { return side.client == nil ? "–" : "deleted" }
    if let column, let value = values.values.first(where: { $0.key == column })?.value {
      return text(value)
    }
    return values.values.map { "\(printable($0.key)) \(text($0.value))" }.joined(separator: ", ")
  }

  /// Returns in words which side an outcome names.
  private func text(outcome: String) -> String {
    let what = column == nil ? "version" : "value"
    switch outcome {
    case "local", "remote": return "the \(outcome) \(what)"
    case "both": return "both"
    default: return "another \(what)"
    }
  }

  /// Returns what is shown now, in words.
  private func nowText(_ text: (ValueJSON) -> String) -> String {
    guard let now else { return "not synchronized" }
    guard now.isShown else { return "not shown" }
    let value = now.value.map(text) ?? "shown"
    return now.outcome.map { "\(value) (\(self.text(outcome: $0)))" } ?? value
  }

  /// The cells of the conflict's line in a list.
  var cells: [String] {
    [
      "\(number)", status + (isArchived ? ", archived" : ""),
      rowText + (column.map { " \(printable($0))" } ?? ""),
      text(local, \.text), "|", text(remote, \.text), rule, "now \(nowText(\.text))",
    ]
  }

  /// The lines that show the conflict with all its details, and its values in full.
  var lines: [String] {
    var rows = [
      ["conflict", "\(number), \(status)" + (isArchived ? ", archived" : "")],
      ["noticed", timeText(noticedMilliseconds)],
      ["about", "\(kind): \(rowText)" + (column.map { ", \(printable($0))" } ?? "")],
    ]
    if let base { rows.append(["before", base.wholeText]) }
    for (name, side, who) in [("local", local, localWho), ("remote", remote, remoteWho)] {
      var line = text(side, \.wholeText)
      if let milliseconds = side.editedMilliseconds {
        line += "  (\(who)\(who.isEmpty ? "" : ", ")\(timeText(milliseconds)))"
      }
      rows.append([name, line])
    }
    rows.append(["rule", rule])
    rows.append(["outcome", text(outcome: outcome)])
    rows.append(["now", nowText(\.wholeText)])
    if let message { rows.append(["note", printable(message)]) }
    return alignedLines(rows)
  }
}
