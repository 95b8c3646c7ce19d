/// From how much on files are handled in several portions, joined, and cleared
/// away. Where these are small, few edits reach every border between them.
package struct SyncThresholds: Hashable, Sendable {
  /// The most change sets that are handed to the store at once.
  package var windowCount = 256
  /// So many own change sets make clearing away due.
  package var ownInterval = Housekeeping.ownInterval
  /// So many change sets of others make it due.
  package var appliedInterval = Housekeeping.appliedInterval
  /// So many loose files begin a compaction.
  package var looseCount = CompactionPlan.leastLooseCount
  /// So many of the last stay loose.
  package var tailCount = CompactionPlan.tailCount
  /// So many neighbours of a size become one segment.
  package var mergeCount = CompactionPlan.mergeCount
  /// So many change sets beyond the best whole store are too many, whatever
  /// their size.
  package var wholeStoreCount = WholeStoreDecision.greatestCount
  /// So few bytes beyond it are nothing.
  package var wholeStoreBytes = WholeStoreDecision.leastByteCount

  /// The usual ones.
  package init() {}
}
