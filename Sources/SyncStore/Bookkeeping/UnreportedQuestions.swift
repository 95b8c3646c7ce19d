import Foundation
import SyncModel

/// The conflicts that synchronizations have left undecided, and that no report has told yet.
///
/// A synchronization that fails after it has applied changes reports nothing, and may not have asked the
/// delegate. The next one does both.
struct UnreportedQuestions: Codable {
  /// Their key among the values of ``DeviceRecords``.
  static let key = "questions"

  /// Their numbers in the journal.
  private(set) var numbers: Set<Int64> = []
  /// Those about which the delegate was asked.
  private(set) var asked: Set<Int64> = []

  init() {}

  init(_ bytes: [UInt8]) throws {
    self = try StoredJSON.read(from: bytes, of: DeviceRecords.definition.name, key: Self.key)
  }

  /// Adds the questions of a transaction. If one has a new side, the delegate is asked again.
  static func add(_ numbers: Set<Int64>, to records: DeviceRecords) throws {
    guard !numbers.isEmpty else { return }
    var all = try read(records)
    all.numbers.formUnion(numbers)
    all.asked.subtract(numbers)
    try all.write(records)
  }

  /// Notes that the delegate was asked about all of them.
  static func noteAsked(_ records: DeviceRecords) throws {
    var all = try read(records)
    all.asked = all.numbers
    try all.write(records)
  }

  static func read(_ records: DeviceRecords) throws -> UnreportedQuestions {
    try records.read(key).map(UnreportedQuestions.init) ?? UnreportedQuestions()
  }

  private func write(_ records: DeviceRecords) throws {
    try records.write(Self.key, to: Array(try JSONEncoder().encode(self)))
  }
}

extension UnreportedQuestions: StoredValue {
  /// A number without an open entry is passed over.
  func checkNumbers() throws {}
}
