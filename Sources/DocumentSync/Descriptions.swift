import SyncModel
import SyncStore

/// A whole store in a shared directory.
public struct WholeStoreDescription: Hashable, Sendable, Codable {
  /// The client that uploaded it.
  public var client: ClientIdentifier
  /// Its number among that client's whole stores, from 1.
  public var number: UInt64
  /// The hash of its file.
  public var hash: ContentHash
  /// The change sets that it contains.
  public var vector: VersionVector
  /// The length of its file in bytes.
  public var byteCount: Int
  /// The length of the database in bytes.
  public var storeByteCount: Int

  /// Joins the parts.
  public init(
    client: ClientIdentifier, number: UInt64, hash: ContentHash, vector: VersionVector,
    byteCount: Int, storeByteCount: Int
  ) {
    self.client = client
    self.number = number
    self.hash = hash
    self.vector = vector
    self.byteCount = byteCount
    self.storeByteCount = storeByteCount
  }
}

/// What a client is registered with.
public struct ApplicationRegistration: Hashable, Sendable, Codable {
  /// The identifier of the shared directory.
  public var root: RootIdentifier
  /// The application's identifier.
  public var application: String
  /// The client.
  public var client: ClientIdentifier
  /// Whether this call created the application.
  public var created: Bool

  /// Joins the parts.
  public init(
    root: RootIdentifier, application: String, client: ClientIdentifier, created: Bool
  ) {
    self.root = root
    self.application = application
    self.client = client
    self.created = created
  }
}

/// What to do where a file stands that a whole store would replace.
public enum ExistingFile: Hashable, Sendable, Codable {
  /// Refuse, and change nothing.
  case refuse
  /// Keep the old file beside the new one, under a name that says so. What a
  /// store of the same document had not sent goes on in the new one, which
  /// takes its place: see ``ReplacedStore``.
  case replaceKeepingBackup
  /// The same, and take its rows into the document, as edits of this device:
  /// see ``LocalStore/adopt(snapshotAt:mergingDatabaseAt:prefer:binding:options:checkCancellation:onProgress:)``.
  case merge(prefer: MergePreference)
}

/// A store under sync that joining has replaced.
public struct ReplacedStore: Hashable, Sendable, Codable {
  /// The client that it was; `nil` if it could not be read.
  public var client: ClientIdentifier?
  /// The identifier of its document, likewise.
  public var document: String?
  /// The shared directory that it was synchronized with, likewise.
  public var directory: String?
  /// Whether that is the document that was joined. If so, the new store sends
  /// what it had not sent, and retires its client; if not, all that is in the
  /// backup alone.
  public var isSameDocument = false
  /// How many change sets it had not sent.
  public var unsentChangeSets = 0
  /// Why it could not be read; `nil` if it could. What it had not sent is in
  /// the backup alone then, and its client is to be retired.
  public var unreadable: String?
}
