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
  /// Keep the old file beside the new one, under a name that says so.
  case replaceKeepingBackup
  /// The same, and take its rows into the document, as edits of this device:
  /// see ``LocalStore/adopt(snapshotAt:mergingDatabaseAt:prefer:binding:options:checkCancellation:)``.
  case merge(prefer: MergePreference)
}
