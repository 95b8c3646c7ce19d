import SyncModel

/// What was removed from a shared directory, or would be.
public struct RemovalReport: Hashable, Sendable {
  /// The documents that were deleted, in order of identifier.
  public var documents: [DocumentDescription] = []
  /// The clients whose descriptions were removed, in order.
  public var clients: [ClientDescription] = []
  /// How many files were removed.
  public var fileCount = 0
  /// How many bytes they had.
  public var byteCount = 0
  /// Files that do not belong to DocumentSync and stay, by their paths below
  /// the root.
  public var remaining: [String] = []
  /// Whether nothing was removed, and the report contains what would be.
  public var isPreview: Bool

  /// Creates an empty report.
  package init(isPreview: Bool) { self.isPreview = isPreview }
}
