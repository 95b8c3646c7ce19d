import SyncModel

/// What was removed from a shared directory, or would be.
public struct RemovalReport: Hashable, Sendable, Codable {
  /// The documents that were deleted, in order of identifier.
  public var documents: [DocumentDescription] = []
  /// The clients whose descriptions were removed, in order.
  public var clients: [ClientDescription] = []
  /// How many files were removed.
  public var fileCount = 0
  /// How many bytes they had.
  public var byteCount = 0
  /// Files that are none of ours and stay, by their paths below the root.
  public var remaining: [String] = []
  /// Whether this is what would be done.
  public var isPreview: Bool

  /// Nothing yet.
  public init(isPreview: Bool) { self.isPreview = isPreview }
}
