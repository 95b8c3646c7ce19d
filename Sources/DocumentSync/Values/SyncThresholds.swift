/// The counts and sizes above which files are handled in portions, joined, and
/// removed. With small thresholds, few edits suffice to reach every
/// boundary between portions.
package struct SyncThresholds: Hashable, Sendable {
  /// The most change sets that the store gets at once.
  package var windowCount = 256
  /// How many change sets of its own make a vacuum due.
  package var ownInterval: UInt64 = 32
  /// How many change sets of others make a vacuum due.
  package var appliedInterval: UInt64 = 256
  /// How many loose change set files make a compaction due.
  package var looseCount = 32
  /// How many of the last change sets stay loose, because others read them
  /// next.
  package var tailCount = 8
  /// How many neighbouring segments of one size are joined into one.
  package var mergeCount = 8
  /// More change sets than this that the best whole store does not contain are
  /// too many, whatever their size.
  package var wholeStoreCount: UInt64 = 1_000
  /// Fewer bytes of such change sets than this do not matter.
  package var wholeStoreBytes = 1 << 20

  /// The number of rows from which on ``SyncEnvironment/deletionLimit`` applies to a table.
  package var deletionLimitRows = 100

  /// Creates the usual thresholds.
  package init() {}
}
