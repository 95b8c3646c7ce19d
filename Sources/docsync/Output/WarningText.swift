import SyncModel
import SyncStore

extension SyncWarning {
  /// The warning for people, on one line.
  func text(store: String) -> String {
    var text = printable(message)
    if let reason = reason.flatMap(ParkedRow.Reason.init(rawValue:)) { text += ": \(reason.text)" }
    if let client { text += ": \(ClientNames.short(client))" }
    if let milliseconds { text += ", by \(Self.duration(milliseconds))" }
    if code != .editTooLarge, !names.isEmpty {
      text += ": \(printable(names.joined(separator: ", ")))"
    }
    if let conflict { text += " (conflict \(conflict))" }
    if code == .wholeStoreRefused {
      text += " Run “docsync verify \(shellWord(store))”, and do what it says."
    }
    return count > 1 ? text + " (\(count) times)" : text
  }

  private static func duration(_ milliseconds: Int64) -> String {
    let hours = milliseconds / 3_600_000
    return hours >= 48 ? counted(Int(hours / 24), "day") : counted(Int(hours), "hour")
  }
}
