/// How far an operation has come: a snapshot.
public struct SyncProgress: Hashable, Sendable {
  /// What an operation is doing.
  public enum Phase: String, Hashable, Sendable, CaseIterable {
    /// Nothing yet.
    case waiting
    /// Looking at what is in the shared directory.
    case listing
    /// Taking a consistent copy of the store.
    case snapshot
    /// Compressing that copy.
    case compressing
    /// Reading files of the others.
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
    /// Making one file of many.
    case compacting
    /// Finding out how large files are.
    case measuring
    /// Removing files.
    case removing
    /// Done, one way or another.
    case finished
  }

  /// What the operation is doing.
  public var phase = Phase.waiting
  /// How many things are done in this phase: files, or in a database change
  /// sets, edits, rows or tables.
  public var completedCount = 0
  /// How many this phase has; 0 while that is not known.
  public var totalCount = 0
  /// How many bytes are done in this phase.
  public var completedBytes = 0
  /// How many bytes this phase has; 0 while that is not known, such as while
  /// the length of a file to be read is unknown.
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
  /// Called whenever an operation makes progress, on the operation's thread, one
  /// call at a time: it should return soon.
  public typealias Handler = @Sendable (SyncProgress) -> Void
}
