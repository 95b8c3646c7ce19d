import DocumentSync

/// What a synchronization of a model has done.
public struct ModelReport: Sendable {
  /// Something that the application's developer, or its user, may have to mend.
  public struct Problem: Hashable, Sendable, CustomStringConvertible {
    /// The kind of a problem. Later versions may add kinds.
    public struct Kind: RawRepresentable, Hashable, Sendable {
      /// The name of the kind.
      public let rawValue: String
      /// Creates a kind with the given name.
      public init(rawValue: String) { self.rawValue = rawValue }

      /// A reported record has a type that the schema does not have.
      public static let unknownType = Kind(rawValue: "unknownType")
      /// A reported record has a field that its type does not have.
      public static let unknownField = Kind(rawValue: "unknownField")
      /// A reported value is not of the kind of its field, or cannot be stored.
      public static let unsuitableValue = Kind(rawValue: "unsuitableValue")
      /// The identity of a reported record is empty or cannot be stored.
      public static let unsuitableIdentity = Kind(rawValue: "unsuitableIdentity")
      /// One batch has a record twice.
      public static let reportedTwice = Kind(rawValue: "reportedTwice")
      /// The adapter reports what was acknowledged before.
      public static let acknowledgedBefore = Kind(rawValue: "acknowledgedBefore")
      /// A record is reported as changed, and as deleted.
      public static let changedAndDeleted = Kind(rawValue: "changedAndDeleted")
      /// A record waits in the mirror for a record to which it refers.
      public static let parentMissing = Kind(rawValue: "parentMissing")
      /// A record waits in the mirror, since another one has a unique value.
      public static let uniqueValueTaken = Kind(rawValue: "uniqueValueTaken")
      /// A record was edited after another device had deleted it. It stays deleted.
      public static let editOfDeletedRecord = Kind(rawValue: "editOfDeletedRecord")
      /// A record was deleted, and comes back since others refer to it.
      public static let deletionRefused = Kind(rawValue: "deletionRefused")
      /// The adapter refused a record of another device. It comes again with the next synchronization.
      public static let recordRefused = Kind(rawValue: "recordRefused")
      /// The adapter refused a deletion of another device. It comes again with the next synchronization.
      public static let deletionNotDone = Kind(rawValue: "deletionNotDone")
      /// The model was put back to an earlier state, or had another mirror. All records were compared, and those
      /// that differ were delivered again.
      public static let modelPutBack = Kind(rawValue: "modelPutBack")
      /// A record of such a model had other values than the document, whose values it gets.
      public static let recordReplaced = Kind(rawValue: "recordReplaced")
    }

    /// The kind of the problem.
    public var kind: Kind
    /// The record that it is about.
    public var record: ModelRecord.ID?
    /// The problem as a sentence.
    public var message: String
    /// What to do about it.
    public var remedy: String

    /// The record, the message and the remedy on one line.
    public var description: String {
      (record.map { "\($0): " } ?? "") + message + " " + remedy
    }
  }

  /// What the synchronization of the mirror has done; `nil` if it was not part of the call.
  public internal(set) var synchronization: SyncReport?
  /// How many records the mirror took from the model.
  public internal(set) var takenRecords = 0
  /// How many deletions the mirror took from the model.
  public internal(set) var takenDeletions = 0
  /// How many records the adapter saved.
  public internal(set) var savedRecords = 0
  /// How many records the adapter deleted.
  public internal(set) var deletedRecords = 0
  /// The records that were not delivered, since the application edited them all the time, or since the adapter
  /// refused them.
  public internal(set) var undelivered: Set<ModelRecord.ID> = []
  /// What may have to be mended, each once.
  public private(set) var problems: [Problem] = []
  private var seen: Set<Problem> = []

  /// Adds a problem, unless it is there.
  mutating func add(_ problem: Problem) {
    if seen.insert(problem).inserted { problems.append(problem) }
  }

  /// Removes problems that have gone.
  mutating func removeProblems(where isGone: (Problem) -> Bool) {
    problems.removeAll(where: isGone)
    seen = Set(problems)
  }

  mutating func add(
    _ kind: Problem.Kind, _ record: ModelRecord.ID?, _ message: String, _ remedy: String
  ) {
    add(Problem(kind: kind, record: record, message: message, remedy: remedy))
  }
}
