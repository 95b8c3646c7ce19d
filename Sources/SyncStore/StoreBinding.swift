import SyncModel

/// What a store is bound to: an application, a directory, a document in one
/// generation, and the client that this store is.
public struct StoreBinding: Hashable, Sendable, Codable {
  /// The application's identifier, as its developer chose it.
  public var application: String
  /// The shared directory that the application was created in.
  public var root: RootIdentifier
  /// Where the directory was when it was last used: a hint, not an identity.
  public var directory: String
  /// The document's identifier, as its user chose it.
  public var documentIdentifier: String
  /// The document's opaque name in the directory.
  public var document: DocumentName
  /// The generation of the document.
  public var generation: IntegrityKey
  /// The ordinal of that generation, from 1.
  public var generationOrdinal: Int
  /// The client that this store is.
  public var client: ClientIdentifier
  /// What the user calls this device.
  public var clientDescription: String
  /// The client whose state this one continues, if it is not the first.
  public var ancestor: ClientIdentifier?

  /// Joins the parts.
  public init(
    application: String, root: RootIdentifier, directory: String, documentIdentifier: String,
    document: DocumentName, generation: IntegrityKey, generationOrdinal: Int,
    client: ClientIdentifier, clientDescription: String, ancestor: ClientIdentifier? = nil
  ) {
    self.application = application
    self.root = root
    self.directory = directory
    self.documentIdentifier = documentIdentifier
    self.document = document
    self.generation = generation
    self.generationOrdinal = generationOrdinal
    self.client = client
    self.clientDescription = clientDescription
    self.ancestor = ancestor
  }
}

/// What is synchronized, and how rows are identified, where the defaults do
/// not suit.
public struct StoreConfiguration: Hashable, Sendable, Codable {
  /// How the rows of a table are identified.
  public enum Identity: Hashable, Sendable, Codable {
    /// By the values of the primary key.
    case primaryKey
    /// By random bytes beside a local integer key.
    case surrogate
    /// By the values of these columns.
    case columns([String])
  }

  /// Tables that stay on this device.
  public var excludedTables: Set<String> = []
  /// Columns that stay on this device, by table.
  public var excludedColumns: [String: Set<String>] = [:]
  /// How the rows of some tables are identified.
  public var identities: [String: Identity] = [:]
  /// Columns that refer to a table's primary key without a declared foreign
  /// key: table, then column, then the table referred to.
  public var references: [String: [String: String]] = [:]
  /// How concurrent changes merge, by table. Fixed when the document is
  /// created.
  public var tableMergeTypes: [String: TableMergeType] = [:]
  /// How concurrent changes to a column merge: table, then column. Fixed when
  /// the document is created.
  public var columnMergeTypes: [String: [String: ColumnMergeType]] = [:]

  /// The defaults for everything.
  public init() {}
}
