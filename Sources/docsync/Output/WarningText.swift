import SyncModel
import SyncStore

extension SyncWarning {
  /// The warning for people, on one line.
  func text(store: String, names: ClientNames) -> String {
    var text = printable(message)
    if let reason = reason.flatMap(ParkedRow.Reason.init(rawValue:)) { text += ": \(reason.text)" }
    if let client { text += ": \(names.label(client))" }
    if let milliseconds { text += ", by \(Self.duration(milliseconds))" }
    text += namesText
    if let conflict { text += " (conflict \(conflict))" }
    if code == .wholeStoreRefused {
      text += " Run “docsync verify \(shellWord(store))”, and do what it says."
    }
    return count > 1 ? text + " (\(count) times)" : text
  }

  /// The end of the sentence that names columns or tables.
  private var namesText: String {
    guard !names.isEmpty else { return "" }
    let list = printable(names.joined(separator: ", "))
    return switch code {
    case .editOfDeletedRow, .referenceOfDeletedRow, .deletionOfEditedRow, .deletionOfReferringRow:
      " (\(names.count == 1 ? "column" : "columns") \(list))"
    // The message has them.
    case .editTooLarge, .triggerFailed, .localValueRefused: ""
    default: ": \(list)"
    }
  }

  private static func duration(_ milliseconds: Int64) -> String {
    let hours = milliseconds / 3_600_000
    return hours >= 48 ? counted(Int(hours / 24), "day") : counted(Int(hours), "hour")
  }
}
