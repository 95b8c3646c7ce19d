import SyncModel

/// One whole store that is under sync: the way into this module.
///
/// All bookkeeping lives in the store itself, in tables that begin
/// `docsync_`, so that it is atomic with the data. Other programs may read
/// and write the file at any time; waiting for them is bounded by
/// ``Options/busyTimeout``. Methods block, may be called from any thread,
/// and run one at a time.
public final class LocalStore: Sendable {
  /// How a store is opened.
  public struct Options: Sendable {
    /// How long to wait for other programs, in seconds.
    public var busyTimeout: Double = 10
    /// Milliseconds since 1970, for the clock of stamps.
    public var now: @Sendable () -> Int64
    /// The most rows that one change set carries.
    public var rowsPerChangeSet = 20_000
    /// About the most bytes that one change set carries before compression.
    public var bytesPerChangeSet = 8 << 20

    /// The defaults, with the system's clock.
    public init() { now = { 0 } }
  }

  /// Whether the database at `path` is under sync.
  ///
  /// Throws ``StoreError`` `missing` or `notADatabase`.
  public static func isUnderSync(at path: String) throws -> Bool { fatalError("stub") }

  /// Puts the database at `path` under sync: writes the bookkeeping tables
  /// and the capture triggers in one transaction. The rows that are there are
  /// the document's beginning and are not sent as changes.
  ///
  /// Throws and changes nothing if the store is under sync, is no database,
  /// or has a schema that cannot be synchronized.
  public static func create(
    at path: String, binding: StoreBinding, configuration: StoreConfiguration,
    options: Options = Options()
  ) throws -> LocalStore { fatalError("stub") }

  /// What ``create(at:binding:configuration:options:)`` would do, without
  /// writing: the tables with their identities, those left out and why.
  /// Throws what that would throw.
  public static func plan(at path: String, configuration: StoreConfiguration) throws -> StorePlan {
    fatalError("stub")
  }

  /// Opens a store that is under sync. If the application changed its schema,
  /// the triggers are renewed.
  public static func open(at path: String, options: Options = Options()) throws -> LocalStore {
    fatalError("stub")
  }

  /// Makes the snapshot at `path` a store of its own for `binding.client`.
  /// The snapshot is checked first (`quick_check`, no triggers of ours).
  /// `vector` becomes what has been applied.
  public static func adopt(
    snapshotAt path: String, binding: StoreBinding, options: Options = Options()
  ) throws -> LocalStore { fatalError("stub") }

  /// The path of the store.
  public var path: String { fatalError("stub") }
  /// What the store is bound to.
  public var binding: StoreBinding { fatalError("stub") }

  /// Replaces the hint where the directory is.
  public func setDirectory(_ directory: String) throws { fatalError("stub") }

  /// Seals the edits made since the last time: writes them as change sets
  /// into the store, durably, and empties the log, in one transaction.
  /// Without edits it writes nothing.
  public func seal() throws -> SealReport { fatalError("stub") }

  /// The change sets that this store made and still keeps, in order.
  public func sealedChangeSets() throws -> [SealedChangeSet] { fatalError("stub") }

  /// The bytes of a sealed change set, exactly as they are published.
  public func sealedBytes(_ number: UInt64) throws -> [UInt8] { fatalError("stub") }

  /// Records that a sealed change set is in the shared directory. Idempotent.
  public func markPublished(_ number: UInt64) throws { fatalError("stub") }

  /// Applies what can be applied, in causal order, in one transaction per
  /// bounded group, and keeps the rest until its dependencies have come.
  /// A change set that was applied before is passed over.
  public func apply(_ received: [ReceivedChangeSet]) throws -> ApplyReport { fatalError("stub") }

  /// What has been applied of the other clients.
  public func appliedVector() throws -> VersionVector { fatalError("stub") }

  /// The last sealed change set of its own; `nil` for none.
  public func head() throws -> VersionVector.Entry? { fatalError("stub") }

  /// Change sets that were received and wait.
  public func waiting() throws -> [WaitingChangeSet] { fatalError("stub") }

  /// Writes a consistent copy to `destination`, which must not exist, without
  /// client identity, binding, log, or excluded data.
  ///
  /// Throws `unpublishedEdits` if there are edits that are not sealed and
  /// published: synchronize first.
  public func snapshot(to destination: String) throws -> StoreSnapshot { fatalError("stub") }

  /// The digest of what the store shows and of the state beneath.
  public func digest() throws -> StoreDigest { fatalError("stub") }

  /// Where the store stands.
  public func status() throws -> StoreStatus { fatalError("stub") }

  /// The last change sets that were sealed or applied here, newest first.
  public func history(limit: Int) throws -> [AppliedChangeSet] { fatalError("stub") }

  /// A value that the layer above keeps in the store; `nil` if unset.
  public func record(_ key: String) throws -> [UInt8]? { fatalError("stub") }

  /// Keeps a value for the layer above, durably; `nil` removes it.
  public func setRecord(_ key: String, to value: [UInt8]?) throws { fatalError("stub") }

  /// Closes the database. Further calls throw.
  public func close() throws { fatalError("stub") }
}

/// How a database would be put under sync.
public struct StorePlan: Hashable, Sendable {
  /// The tables that will be synchronized.
  public var tables: [StoreStatus.TableStatus]
  /// Tables that are left out, and why.
  public var leftOut: [String: String]
  /// Columns that look like references and are not declared as such, as
  /// `table.column`, with the table that they seem to refer to.
  public var likelyReferences: [String: String]

  /// Joins the parts.
  public init(
    tables: [StoreStatus.TableStatus], leftOut: [String: String],
    likelyReferences: [String: String]
  ) {
    self.tables = tables
    self.leftOut = leftOut
    self.likelyReferences = likelyReferences
  }
}
