import Foundation
import SyncModel
import Testing

@testable import SyncStore

/// One case of `Fixtures/Merge`: what devices do, and what all of them show
/// in the end. `Fixtures/Merge/README.md` says what the keys mean.
struct MergeCase: Sendable {
  /// The name, which no other case has.
  var name: String
  /// One sentence: which rule decides.
  var why: String
  /// The JSON file with the case.
  var file = ""
  /// The SQL that makes the database before it is put under sync.
  var schema: [String]
  var configuration = StoreConfiguration()
  /// How single devices decide conflicts.
  var policies: [String: SyncPolicies] = [:]
  /// How many devices there are at first: A, B and so on.
  var devices: Int
  /// Whether programs edit with foreign keys on.
  var foreignKeys: Bool
  var steps: [Step]
  /// Whether what is sealed after the steps is delivered in every order.
  var inEveryOrder: Bool
  var expectation: Expectation

  /// One thing that happens.
  enum Step: Sendable {
    case edit(on: String, at: Int64?, sql: [String], isCaptured: Bool)
    case seal(String)
    /// Delivers the change sets with these numbers, one by one, or seals and
    /// delivers all that are new.
    case deliver(from: String, to: String, numbers: [UInt64]?)
    case exchange
    case join(String, from: String)
    case check(String, Expectation)
  }

  /// What a device shows.
  struct Expectation: Sendable {
    /// By table or query.
    var rows: [String: [[Value]]] = [:]
    /// The same for single devices.
    var rowsOn: [String: [String: [[Value]]]] = [:]
    /// `nil` if it does not matter.
    var parked: [String]?
    var conflicts: [Conflict]?
    var warnings: [String]?
    /// How many change sets wait.
    var waiting: Int?
  }

  /// What the journals say of a cell or a row, taken together.
  struct Conflict: Hashable, Sendable {
    var kind: String
    /// `table[key]`, or `3 × table`.
    var row: String
    var column: String?
    /// The values of the cell that did not stay.
    var lost: [Value]
  }
}

extension MergeCase: CustomTestStringConvertible {
  var testDescription: String { "\(file): \(name)" }
}

/// Why a file of cases cannot be used.
struct MergeCaseError: Error, CustomStringConvertible {
  var description: String
}
