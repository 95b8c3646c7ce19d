extension VerifyReport {
  /// Something that verifying a shared directory or a store has found.
  public struct Finding: Hashable, Sendable, CustomStringConvertible {
    /// How grave it is.
    public enum Severity: String, Hashable, Sendable, CaseIterable, Comparable {
      /// Worth knowing; synchronization works.
      case note
      /// Something is missing, or cannot be used yet. It may arrive by
      /// itself; if not, follow the remedy.
      case waiting
      /// A rule is broken. Only the remedy mends it.
      case error

      /// Orders severities by gravity.
      public static func < (left: Severity, right: Severity) -> Bool { left.rank < right.rank }

      private var rank: Int {
        switch self {
        case .note: 0
        case .waiting: 1
        case .error: 2
        }
      }
    }

    /// The kind of finding.
    public var kind: Kind
    /// How grave it is.
    public var severity: Severity
    /// The file or folder, below the root of the shared directory; `nil` for
    /// findings in a store.
    public var path: String?
    /// The table of the store, the bookkeeping's own included; `nil` for
    /// findings in a directory.
    public var table: SQLName?
    /// What is wrong, a sentence for the user.
    public var message: String
    /// What to do, a sentence for the user.
    public var remedy: Remedy
    /// What exactly was found, for the developer.
    public var detail: String?

    /// Creates a finding, with the usual severity and remedy of its kind unless others are given.
    package init(
      _ kind: Kind, path: String? = nil, table: SQLName? = nil, _ message: String,
      detail: String? = nil, severity: Severity? = nil, remedy: Remedy? = nil
    ) {
      self.kind = kind
      self.severity = severity ?? kind.severity
      self.path = path
      self.table = table
      self.message = message
      self.remedy = remedy ?? kind.remedy
      self.detail = detail
    }

    /// The finding in one line.
    public var description: String {
      var text = "\(severity.rawValue) \(kind.rawValue): \(message)"
      if let place = path ?? table?.text { text += " (\(place))" }
      text += " \(remedy)"
      if let detail { text += " [\(detail)]" }
      return text
    }
  }
}
