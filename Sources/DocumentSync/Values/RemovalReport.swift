import SyncModel

/// The files, documents and clients that a call removed from a shared
/// directory, or would remove.
public struct RemovalReport: Hashable, Sendable {
  /// The documents that were deleted, in order of identifier.
  public var documents: [DocumentDescription] = []
  /// The clients whose descriptions were removed, in order.
  public var clients: [ClientDescription] = []
  /// The number of files that were removed.
  public var fileCount = 0
  /// The length of these files together, in bytes.
  public var byteCount = 0
  /// Files that do not belong to DocumentSync and stay, by their paths below
  /// the root.
  public var remaining: [String] = []
  /// Whether the call removed nothing, and the report contains what it would
  /// remove.
  public var isPreview: Bool

  /// Creates an empty report.
  package init(isPreview: Bool) { self.isPreview = isPreview }
}
