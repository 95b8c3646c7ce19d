import GRDB
import SyncModel

/// A row whose cells bookkeeping stores, since its table does not show it as it is in the merged
/// state.
struct KeptRow {
  enum Reason: Hashable {
    /// It exists, or changes of it are known, and it is not shown.
    case parked(ParkedRow.Reason)
    /// It is deleted. Bookkeeping stores its cells, in case it has to come back, or only its new
    /// identity.
    case tombstone
    /// It is deleted, but shown because other rows refer to it.
    case rescued
    /// It is shown with other references than its own.
    case overlaid
    /// It exists, and is shown under the identity that it has with the stand-ins of the rows that
    /// it refers to.
    case elsewhere
    /// It does not exist: its table shows another row under this identity.
    case borrowed
  }

  var reason: Reason
  /// The new identity of a deleted row that moved. For a row that exists and refers by its identity
  /// to rows that have stand-ins: the identity under which it is shown, or would be.
  var movedTo: RowIdentity?
  /// The cells, in order of column. For a row that is shown, only those in which it differs.
  var cells: [(column: Int, value: Value)]
}

extension KeptRow.Reason: RawRepresentable {
  init?(rawValue: String) {
    switch rawValue {
    case "tombstone": self = .tombstone
    case "rescued": self = .rescued
    case "overlaid": self = .overlaid
    case "elsewhere": self = .elsewhere
    case "borrowed": self = .borrowed
    default:
      guard let reason = ParkedRow.Reason(rawValue: rawValue) else { return nil }
      self = .parked(reason)
    }
  }

  var rawValue: String {
    switch self {
    case .parked(let reason): reason.rawValue
    case .tombstone: "tombstone"
    case .rescued: "rescued"
    case .overlaid: "overlaid"
    case .elsewhere: "elsewhere"
    case .borrowed: "borrowed"
    }
  }

  /// Whether the row's table has a row with its identity.
  var isShown: Bool {
    switch self {
    case .rescued, .overlaid, .borrowed: true
    case .parked, .tombstone, .elsewhere: false
    }
  }

  /// The reasons that are not reported as parked rows, as a list in SQL.
  static var silentList: String {
    let reasons: [KeptRow.Reason] = [.tombstone, .rescued, .overlaid, .elsewhere, .borrowed]
    return "(\(reasons.map { literal($0.rawValue) }.joined(separator: ", ")))"
  }
}

/// The key by which a row's reference finds the parent.
struct ReferenceKey: Hashable {
  var parent: Int
  var columns: SQLName
  var key: RowIdentity
}
