import DocumentSync
import SyncStore

/// What devices are set up with: as apps have it, unless a history draws
/// otherwise.
struct FleetCircumstances: Hashable, Sendable {
  /// How the store of each device keeps its journal, by SQLite's names.
  var journalModes: [Int: String] = [:]
  /// How many files a manager reads at a time.
  var parallelReads = 1
  /// From how much on there are several portions of everything; `nil` for as
  /// much as usual.
  var borders: Borders?
  /// How many entries the conflict journal keeps.
  var conflictEntries: Int?

  /// Thresholds so small that few edits reach them.
  struct Borders: Hashable, Sendable {
    var rowsPerChangeSet: Int
    var bytesPerChangeSet: Int
    var rowsPerTransaction: Int
    var stampBlockBytes: Int
    var fetchWindowBytes: Int
    var keptChangeSetBytes: Int
    var thresholds: SyncThresholds
  }

  func apply(to options: inout LocalStore.Options) {
    if let conflictEntries { options.conflictEntries = conflictEntries }
    guard let borders else { return }
    options.rowsPerChangeSet = borders.rowsPerChangeSet
    options.bytesPerChangeSet = borders.bytesPerChangeSet
    options.rowsPerTransaction = borders.rowsPerTransaction
    options.stampBlockBytes = borders.stampBlockBytes
  }

  func apply(to environment: inout SyncEnvironment) {
    environment.parallelReads = parallelReads
    apply(to: &environment.store)
    guard let borders else { return }
    environment.fetchWindowBytes = borders.fetchWindowBytes
    environment.keptChangeSetBytes = borders.keptChangeSetBytes
    environment.thresholds = borders.thresholds
  }
}

extension FleetCircumstances: CustomStringConvertible {
  /// What is not as usual, a line for each.
  var description: String {
    var lines = journalModes.sorted { $0.key < $1.key }.map {
      "-- device \($0) keeps a \($1) journal"
    }
    if parallelReads > 1 { lines.append("-- \(parallelReads) files are read at a time") }
    if let conflictEntries { lines.append("-- conflict journals keep \(conflictEntries) entries") }
    if let borders { lines.append("-- \(borders)") }
    return lines.joined(separator: "\n")
  }
}
