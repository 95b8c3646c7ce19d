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
  package var vector: VersionVector
  /// The length of its file in bytes.
  public var byteCount: Int
  /// The length of the database in bytes.
  public var storeByteCount: Int

  /// Creates a description from its parts.
  package init(
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

/// The result of registering a client with an application.
public struct ApplicationRegistration: Hashable, Sendable {
  /// The identifier of the shared directory.
  package var root: RootIdentifier
  /// The application's identifier.
  public var application: String
  /// The client that was registered.
  public var client: ClientIdentifier
  /// Whether this call created the application.
  public var created: Bool

  /// Creates a registration from its parts.
  package init(
    root: RootIdentifier, application: String, client: ClientIdentifier, created: Bool
  ) {
    self.root = root
    self.application = application
    self.client = client
    self.created = created
  }
}

/// The treatment of a file that exists where joining would put the store.
public enum ExistingFile: Hashable, Sendable {
  /// Refuse, and change nothing.
  case refuse
  /// Keep a copy of the old database beside the new one, as a backup. If the
  /// old database is a store of the same document, the new store takes its place
  /// and sends its unsent changes: see ``ReplacedStore``.
  ///
  /// The file stays, and programs that have it open use the new store from then
  /// on. If a program writes to it meanwhile, joining throws `storeBusy`, and
  /// nothing is changed. A file that is no database is moved.
  case replaceKeepingBackup
  /// Keep a copy of the old database as a backup, as
  /// ``replaceKeepingBackup`` does, and merge its rows into the document, as
  /// edits of this device. If both have a row with different values, `prefer`
  /// decides; see ``MergedRows/Preference``.
  case merge(prefer: MergedRows.Preference)
}

/// A store under sync that joining has replaced.
public struct ReplacedStore: Hashable, Sendable {
  /// The client of the store; `nil` if the store could not be read.
  public var client: ClientIdentifier?
  /// The identifier of its document; `nil` if the store could not be read.
  public var document: String?
  /// The shared directory that it was synchronized with; `nil` if the store
  /// could not be read.
  public var directory: String?
  /// Whether it belongs to the document that was joined. If so, the new store
  /// sends its unsent changes and retires its client; if not, only the backup
  /// contains these changes.
  public var isSameDocument = false
  /// The number of change sets that it had not sent.
  public var unsentChangeSets = 0
  /// The number of change sets that it had sent, that the directory had lost, and
  /// that were put back.
  public var restoredChangeSets = 0
  /// The numbers of the change sets of ``client`` that it had sent and that the
  /// directory has lost, if the store does not have them any more either: only
  /// the backup contains their rows.
  public var missingChangeSets: [UInt64] = []
  /// The number of edits that were too large to be sent: only the backup
  /// contains them.
  public var heldEdits = 0
  /// Why the store could not be read; `nil` if it could. The unsent edits of an
  /// unreadable store are only in the backup; retire its client.
  public var unreadable: String?
}
