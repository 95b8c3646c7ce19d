import DocumentSync
import SyncStore

/// The settings of devices: those of apps, unless a history draws others.
struct FleetCircumstances: Hashable, Sendable {
  /// The journal mode of each device's store, named as in SQLite.
  var journalModes: [Int: String] = [:]
  /// The number of files that a manager reads at the same time.
  var parallelReads = 1
  /// The sizes at which devices divide work into portions; `nil` for the usual ones.
  var borders: Borders?
  /// The greatest number of entries of the conflict journal; `nil` for the usual one.
  var conflictEntries: Int?
  /// The bytes of memory that a change set may take; `nil` for the usual cap.
  var memoryBytes: Int?

  /// The deletions that a synchronization makes without being told to; `nil` for any number.
  var deletionLimit: DeletionLimit?

  /// Sizes and thresholds so small that few edits reach them.
  struct Borders: Hashable, Sendable {
    var rowsPerChangeSet: Int
    var bytesPerChangeSet: Int
    var rowsPerTransaction: Int
    var stampBlockBytes: Int
    var fetchWindowBytes: Int
    var keptChangeSetBytes: Int
    var thresholds: SyncThresholds
  }

  /// Whether the edits of a few programs fill several change sets.
  var dividesEdits: Bool {
    borders.map { $0.rowsPerChangeSet < 5 || $0.bytesPerChangeSet < 100 } ?? false
  }

  func apply(to options: inout StoreOptions) {
    options.ignoreRealTime()
    if let conflictEntries { options.conflictEntries = conflictEntries }
    if let memoryBytes {
      options.limits.memoryBytes = memoryBytes
      // With the usual caps a row may take 640 bytes besides its values.
      options.rowsPerChangeSet = 20
    }
    guard let borders else { return }
    options.rowsPerChangeSet = borders.rowsPerChangeSet
    options.bytesPerChangeSet = borders.bytesPerChangeSet
    options.rowsPerTransaction = borders.rowsPerTransaction
    options.stampBlockBytes = borders.stampBlockBytes
  }

  func apply(to environment: inout SyncEnvironment) {
    environment.parallelReads = parallelReads
    apply(to: &environment.store)
    if let borders {
      environment.fetchWindowBytes = borders.fetchWindowBytes
      environment.keptChangeSetBytes = borders.keptChangeSetBytes
      environment.thresholds = borders.thresholds
    }
    if let deletionLimit {
      environment.deletionLimit = deletionLimit.share
      environment.thresholds.deletionLimitRows = deletionLimit.leastRows
    }
  }
}

extension StoreOptions {
  /// Lets transactions last as long as they may, since real time would make a history differ each
  /// time.
  mutating func ignoreRealTime() {
    transactionTime = nil
    pause = { _ in }
  }
}

extension FleetCircumstances: CustomStringConvertible {
  /// A line for each setting that is not the usual one.
  var description: String {
    var lines = journalModes.sorted { $0.key < $1.key }.map {
      "-- device \($0) keeps a \($1) journal"
    }
    if parallelReads > 1 { lines.append("-- \(parallelReads) files are read at a time") }
    if let conflictEntries { lines.append("-- conflict journals keep \(conflictEntries) entries") }
    if let deletionLimit { lines.append("-- \(deletionLimit)") }
    if let memoryBytes { lines.append("-- a change set takes \(memoryBytes) bytes at most") }
    if let borders { lines.append("-- \(borders)") }
    return lines.joined(separator: "\n")
  }
}
