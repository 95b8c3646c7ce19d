import SyncModel

/// What a vacuum cleared away, and what it kept for which member.
public struct VacuumReport: Hashable, Sendable {
  /// Files of one kind, by one client.
  public struct Files: Hashable, Sendable {
    /// The kinds of files that are cleared away.
    public enum Kind: String, Hashable, Sendable {
      /// Change sets in files of their own.
      case changeSets
      /// Many change sets in one file.
      case segments
      /// Snapshots of the document.
      case wholeStores
      /// Messages from one client to all members.
      case commands
      /// RecentSync markers.
      case markers
    }

    /// What they are.
    public var kind: Kind
    /// The client that they belong to.
    public var client: ClientIdentifier
    /// The least number of them; the revision of markers.
    public var first: UInt64
    /// The greatest number.
    public var last: UInt64
    /// How many files.
    public var count: Int
    /// Why they were removed, or why they stay: a sentence for the user.
    public var reason: String
    /// The member that they are kept for, if they are kept for one.
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

  /// What was cleared away.
  public var removed: [Files] = []
  /// What is kept, and for which member.
  public var kept: [Files] = []
  /// Segments that were made of loose change sets or of smaller ones.
  public var madeSegments = 0
  /// Segments of others that were read and found whole.
  public var verifiedSegments = 0
  /// Whether a whole store was uploaded.
  public var uploadedWholeStore = false

  /// Creates an empty report.
  package init() {}

  /// The number of files that were removed.
  public var removedCount: Int { removed.reduce(0) { $0 + $1.count } }
}
