import Foundation
import SyncModel

/// Warnings of transactions outside of a synchronization. The store holds them until a
/// synchronization, perhaps of another process, reports them.
enum UnreportedWarnings {
  /// Their key among the values of ``DeviceRecords``.
  static let key = "unreported"

  /// Returns the warnings that a store holds.
  static func read(_ records: DeviceRecords) throws -> [SyncWarning] {
    try records.read(key).map {
      try StoredJSON.read(from: $0, of: DeviceRecords.definition.name, key: key)
    } ?? []
  }

  /// Adds warnings to those that a store holds.
  static func add(_ warnings: [SyncWarning], to records: DeviceRecords) throws {
    guard !warnings.isEmpty else { return }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let all = SyncWarning.joining(try read(records) + warnings)
    try records.write(key, to: Array(try encoder.encode(all)))
  }

  /// Returns the warnings that a store holds, and removes them: the caller reports them.
  static func take(_ records: DeviceRecords) throws -> [SyncWarning] {
    let warnings = try read(records)
    try records.write(key, to: nil)
    return warnings
  }
}
