/// The counts and sizes from which on files are handled in several portions,
/// joined, and cleared away. If these are small, few edits reach every border
/// between portions.
package struct SyncThresholds: Hashable, Sendable {
  /// The most change sets that are handed to the store at once.
  package var windowCount = 256
  /// How many own change sets make a vacuum due.
  package var ownInterval = Housekeeping.ownInterval
  /// How many change sets of others make it due.
  package var appliedInterval = Housekeeping.appliedInterval
  /// How many loose files begin a compaction.
  package var looseCount = CompactionPlan.leastLooseCount
  /// How many of the last change sets stay loose.
  package var tailCount = CompactionPlan.tailCount
  /// How many neighbouring segments of one size become one segment.
  package var mergeCount = CompactionPlan.mergeCount
  /// More change sets than this beyond the best whole store are too many,
  /// whatever their size.
  package var wholeStoreCount = WholeStoreDecision.greatestCount
  /// Fewer bytes than this beyond it do not matter.
  package var wholeStoreBytes = WholeStoreDecision.leastByteCount

  /// Creates the usual thresholds.
  package init() {}
}
