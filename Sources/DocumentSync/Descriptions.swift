import SyncModel

/// A document as it is found in a shared directory.
public struct DocumentDescription: Hashable, Sendable, Codable {
  /// The identifier that its user chose.
  public var identifier: String
  /// The opaque name of its folder.
  public var name: DocumentName
  /// The generation that counts.
  public var generation: IntegrityKey
  /// The ordinal of that generation, from 1.
  public var ordinal: UInt64
  /// What its creator called it.
  public var description: String
  /// The client that began the generation.
  public var creator: ClientIdentifier
  /// When, by that client's clock, in milliseconds since 1970.
  public var createdMilliseconds: Int64
  /// Whether it was deleted.
  public var isDeleted: Bool

  /// Joins the parts.
  public init(
    identifier: String, name: DocumentName, generation: IntegrityKey, ordinal: UInt64,
    description: String, creator: ClientIdentifier, createdMilliseconds: Int64, isDeleted: Bool
  ) {
    self.identifier = identifier
    self.name = name
    self.generation = generation
    self.ordinal = ordinal
    self.description = description
    self.creator = creator
    self.createdMilliseconds = createdMilliseconds
    self.isDeleted = isDeleted
  }
}

/// A client as it describes itself in a shared directory.
public struct ClientDescription: Hashable, Sendable, Codable {
  /// The client.
  public var client: ClientIdentifier
  /// What its user calls the device; empty if it has not arrived.
  public var description: String
  /// The platform that it runs on; empty if it has not arrived.
  public var platform: String
  /// The client whose state it continued, if it was not the first.
  public var ancestor: ClientIdentifier?
  /// When it registered, by its own clock, in milliseconds since 1970.
  public var registeredMilliseconds: Int64?
  /// What it has published and applied of one document; `nil` where none was
  /// asked for, or if it has published no RecentSync.
  public var state: State?

  /// Where a client stands with a document, by its last RecentSync.
  public struct State: Hashable, Sendable, Codable {
    /// The revision of the RecentSync.
    public var revision: UInt64
    /// The number of its last change set; 0 for none.
    public var changeHead: UInt64
    /// What it has applied of the others; `nil` if the RecentSync could not
    /// be read.
    public var applied: VersionVector?
    /// When it wrote that, by its own clock, in milliseconds since 1970.
    public var milliseconds: Int64?

    /// Joins the parts.
    public init(
      revision: UInt64, changeHead: UInt64, applied: VersionVector?, milliseconds: Int64?
    ) {
      self.revision = revision
      self.changeHead = changeHead
      self.applied = applied
      self.milliseconds = milliseconds
    }
  }

  /// Joins the parts.
  public init(
    client: ClientIdentifier, description: String, platform: String,
    ancestor: ClientIdentifier? = nil, registeredMilliseconds: Int64? = nil, state: State? = nil
  ) {
    self.client = client
    self.description = description
    self.platform = platform
    self.ancestor = ancestor
    self.registeredMilliseconds = registeredMilliseconds
    self.state = state
  }
}

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
public enum ExistingFile: String, Hashable, Sendable, Codable {
  /// Refuse, and change nothing.
  case refuse
  /// Keep the old file beside the new one, under a name that says so.
  case replaceKeepingBackup
}
