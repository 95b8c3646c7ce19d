import SyncModel

/// The files that a vacuum removed, and those that it left for a member.
public struct VacuumReport: Hashable, Sendable {
  /// Files of one kind, by one author.
  public struct Files: Hashable, Sendable {
    /// The kinds of files that a vacuum removes.
    public enum Kind: String, Hashable, Sendable {
      /// Change sets in files of their own.
      case changeSets
      /// Segments: files of many change sets.
      case segments
      /// Snapshots of the document.
      case wholeStores
      /// Instructions by one client to all others.
      case commands
      /// RecentSyncs.
      case markers
    }

    /// The kind of the files.
    public var kind: Kind
    /// The author of the files.
    public var client: ClientIdentifier
    /// The least number of the files; for RecentSyncs, the least revision.
    public var first: UInt64
    /// The greatest number or revision.
    public var last: UInt64
    /// The number of files.
    public var count: Int
    /// Why they were removed, or why they stay: a sentence for the user.
    public var reason: String
    /// The member for which they stay, if there is one.
    public var member: ClientIdentifier?

    /// Creates an entry from its parts.
    package init(
      kind: Kind, client: ClientIdentifier, first: UInt64, last: UInt64, count: Int,
      reason: String, member: ClientIdentifier? = nil
    ) {
      self.kind = kind
      self.client = client
      self.first = first
      self.last = last
      self.count = count
      self.reason = reason
      self.member = member
    }
  }

  /// The files that were removed.
  public var removed: [Files] = []
  /// The files that stay, each with the member for which they stay.
  public var kept: [Files] = []
  /// The number of segments that were made of loose change sets or of smaller
  /// segments.
  public var madeSegments = 0
  /// The number of segments of others that were read and found correct.
  public var verifiedSegments = 0
  /// Whether a whole store was uploaded.
  public var uploadedWholeStore = false

  /// Creates an empty report.
  package init() {}

  /// The number of files that were removed.
  public var removedCount: Int { removed.reduce(0) { $0 + $1.count } }
}
