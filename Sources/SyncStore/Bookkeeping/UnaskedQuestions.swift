import Foundation
import SyncModel

/// The conflicts that synchronizations have left undecided, and about which no delegate was asked yet.
///
/// A synchronization that fails after it has applied changes asks and reports nothing; the next one does.
struct UnaskedQuestions: Codable {
  /// Their key among the values of ``DeviceRecords``.
  static let key = "unasked"

  /// Their numbers in the journal, in ascending order.
  private(set) var numbers: [Int64] = []

  init() {}

  init(_ bytes: [UInt8]) throws {
    self = try StoredJSON.read(from: bytes, of: DeviceRecords.definition.name, key: Self.key)
  }

  static func read(_ records: DeviceRecords) throws -> UnaskedQuestions {
    try records.read(key).map(UnaskedQuestions.init) ?? UnaskedQuestions()
  }

  /// Adds numbers to those that a store holds.
  static func add(_ numbers: Set<Int64>, to records: DeviceRecords) throws {
    guard !numbers.isEmpty else { return }
    var all = try read(records)
    all.numbers = numbers.union(all.numbers).sorted()
    try records.write(key, to: Array(try JSONEncoder().encode(all)))
  }
}

extension UnaskedQuestions: StoredValue {
  /// A number without an entry is passed over.
  func checkNumbers() throws {}
}
