import SyncModel
import SyncStore

extension SyncReport {
  /// The exchange of a store's content for that of a whole store.
  public struct Rebootstrap: Hashable, Sendable, Codable {
    /// Why the content was exchanged. Open: later versions may add reasons.
    public struct Reason: RawRepresentable, Hashable, Sendable, Codable {
      /// The reason's name.
      public let rawValue: String
      /// Creates a reason with the given name.
      public init(rawValue: String) { self.rawValue = rawValue }

      /// Change sets that the store needed were removed.
      public static let gap = Reason(rawValue: "gap")
      /// The document was reset on another device.
      public static let reset = Reason(rawValue: "reset")
      /// The document was deleted and created again.
      public static let begunAgain = Reason(rawValue: "begunAnew")
      /// Two devices created the document at the same moment.
      public static let createdTwice = Reason(rawValue: "createdTwice")
    }

    /// Why the content was exchanged.
    public var reason: Reason
    /// The path of a copy of the store before the exchange.
    public var backup: String
    /// The whole store from which the content comes.
    public var wholeStore: WholeStoreDescription
    /// How many change sets of this device were applied again, because the
    /// whole store did not contain them.
    public var reappliedChangeSets: Int
    /// How many change sets of this device have to be written again for another
    /// generation.
    public var returningChangeSets: Int
    /// Whether the tables took another schema. Then the application has to
    /// migrate, as after a download.
    public var changedSchema: Bool
    /// What became of the rows of the store, if they were merged into a
    /// document that is no successor of its own; `nil` otherwise.
    public var merged: MergedRows?
    /// The number of cells and rows for which edits of this device and the
    /// whole store contradict each other.
    public var conflicts: Int
    /// Warnings for the user.
    public var warnings: [SyncWarning]

    /// Creates a re-bootstrap from its parts.
    package init(
      reason: Reason, backup: String, wholeStore: WholeStoreDescription,
      reappliedChangeSets: Int = 0, returningChangeSets: Int = 0, changedSchema: Bool = false,
      conflicts: Int = 0, merged: MergedRows? = nil, warnings: [SyncWarning] = []
    ) {
      self.reason = reason
      self.backup = backup
      self.wholeStore = wholeStore
      self.reappliedChangeSets = reappliedChangeSets
      self.returningChangeSets = returningChangeSets
      self.changedSchema = changedSchema
      self.conflicts = conflicts
      self.merged = merged
      self.warnings = warnings
    }
  }
}
