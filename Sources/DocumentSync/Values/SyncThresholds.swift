/// The counts and sizes from which on files are handled in several portions,
/// joined, and cleared away. If these are small, few edits reach every border
/// between portions.
package struct SyncThresholds: Hashable, Sendable {
  /// The most change sets that are handed to the store at once.
  package var windowCount = 256
  /// How many own change sets make a vacuum due.
  package var ownInterval: UInt64 = 32
  /// How many change sets of others make it due.
  package var appliedInterval: UInt64 = 256
  /// How many loose files begin a compaction.
  package var looseCount = 32
  /// How many of the last change sets stay loose, since others read them next.
  package var tailCount = 8
  /// How many neighbouring segments of one size become one segment.
  package var mergeCount = 8
  /// More change sets than this beyond the best whole store are too many,
  /// whatever their size.
  package var wholeStoreCount: UInt64 = 1_000
  /// Fewer bytes than this beyond it do not matter.
  package var wholeStoreBytes = 1 << 20

  /// Creates the usual thresholds.
  package init() {}
}
