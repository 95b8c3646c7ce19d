/// What is done to the table of notes. Each begins where the one before
/// ended.
enum Workload: String, CaseIterable, Codable, Comparable {
  /// Insert every row.
  case insert = "W1"
  /// Update one column of every row.
  case updateAll = "W2"
  /// Delete a fifth of the rows.
  case delete = "W3"
  /// Update a tenth of the rows, each in a transaction of its own.
  case updateSingly = "W4"
  /// Both devices update the same fifth of the rows, then exchange.
  case conflict = "W5"

  /// One line for the report.
  var summary: String {
    switch self {
    case .insert: "insert every row, 1,000 to a transaction"
    case .updateAll: "update one column of every row, shuffled, 1,000 to a transaction"
    case .delete: "delete a fifth of the rows, shuffled, 1,000 to a transaction"
    case .updateSingly: "update a tenth of the rows, shuffled, in autocommit"
    case .conflict: "both devices update the same fifth of the rows and exchange"
    }
  }

  /// Order of execution.
  static func < (left: Workload, right: Workload) -> Bool { left.rawValue < right.rawValue }

  /// The devices that write; each of the others applies.
  var writers: [Device] { self == .conflict ? [.first, .second] : [.first] }

  /// How the writes are grouped.
  var batching: Batching { self == .updateSingly ? .autocommit : .transactions(of: 1_000) }
}

/// The two devices of every subject.
enum Device: String, CaseIterable {
  case first
  case second

  /// The one that is not this one.
  var other: Device { self == .first ? .second : .first }
}

/// How writes are grouped into transactions.
enum Batching: Equatable {
  case autocommit
  case transactions(of: Int)
  case oneTransaction
}
