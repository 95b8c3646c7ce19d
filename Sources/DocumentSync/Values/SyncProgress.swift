/// A snapshot of an operation's progress.
public struct SyncProgress: Hashable, Sendable {
  /// What an operation is doing at the moment.
  public enum Phase: String, Hashable, Sendable, CaseIterable {
    /// Not begun yet.
    case waiting
    /// Listing the shared directory.
    case listing
    /// Copying the store consistently.
    case snapshot
    /// Compressing that copy.
    case compressing
    /// Reading the files of other devices.
    case downloading
    /// Applying change sets to the store.
    case applying
    /// Waiting for decisions on conflicts.
    case deciding
    /// Sealing local edits.
    case sealing
    /// Publishing files.
    case uploading
    /// Checking files or databases.
    case verifying
    /// Joining many files into one.
    case compacting
    /// Measuring files.
    case measuring
    /// Removing files.
    case removing
    /// Finished, successfully or not.
    case finished
  }

  /// What the operation is doing at the moment.
  public var phase = Phase.waiting
  /// How many items are done in this phase: files, or within a database change
  /// sets, edits, rows or tables.
  public var completedCount = 0
  /// How many items this phase has; 0 while unknown.
  public var totalCount = 0
  /// How many bytes are done in this phase.
  public var completedBytes = 0
  /// How many bytes this phase has; 0 while unknown, as when the length of a
  /// file to read is unknown.
  public var totalBytes = 0

  /// Creates the progress of an operation that has done nothing yet.
  package init() {}

  /// The part that is done, from 0 to 1; `nil` while the total is unknown.
  public var fraction: Double? {
    if totalBytes > 0 { return min(1, Double(completedBytes) / Double(totalBytes)) }
    if totalCount > 0 { return min(1, Double(completedCount) / Double(totalCount)) }
    return nil
  }
}

extension SyncProgress {
  /// A function that an operation calls whenever it makes progress, on the
  /// operation's thread, one call at a time. It should return soon.
  public typealias Handler = @Sendable (SyncProgress) -> Void
}
