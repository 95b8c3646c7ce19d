import SyncModel

/// The binding of a store: its application, its directory, its document in one generation, and its
/// client.
public struct StoreBinding: Hashable, Sendable, Codable {
  /// The application's identifier, as its developer chose it.
  public var application: String
  /// The shared directory that the application was created in.
  package var root: RootIdentifier
  /// The place of the directory when it was last used: a hint, not an identity.
  public var directory: String
  /// The document's identifier, as its user chose it.
  public var documentIdentifier: String
  /// The document's opaque name in the directory.
  package var document: DocumentName
  /// The generation of the document.
  package var generation: IntegrityKey
  /// The ordinal of that generation, from 1.
  public var generationOrdinal: Int
  /// The client that this store is.
  public var client: ClientIdentifier
  /// The user's name for this device.
  public var clientDescription: String
  /// The client whose state this one continues, if it is not the first.
  public var ancestor: ClientIdentifier?

  /// Creates a binding from its parts.
  package init(
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

extension StoreBinding: StoredValue {
  /// Generations are numbered from 1.
  package func checkNumbers() throws {
    try StoredNumbers.check("generationOrdinal", count: generationOrdinal, from: 1)
  }
}

/// The choice of what is synchronized and how rows are identified, where the defaults do not suit.
public struct StoreConfiguration: Hashable, Sendable, Codable {
  /// The way in which the rows of a table are identified.
  public enum Identity: Hashable, Sendable, Codable {
    /// By the values of the primary key.
    case primaryKey
    /// By random bytes beside a local integer key.
    case surrogate
    /// By the values of these columns.
    case columns([SQLName])
  }

  /// Tables that stay on this device.
  public var excludedTables: Set<SQLName> = []
  /// Columns that stay on this device, by table.
  public var excludedColumns: [SQLName: Set<SQLName>] = [:]
  /// How the rows of some tables are identified.
  public var identities: [SQLName: Identity] = [:]
  /// Columns that refer to a table's primary key without a declared foreign
  /// key: table, then column, then the table referred to.
  public var references: [SQLName: [SQLName: SQLName]] = [:]
  /// Columns that look like references and contain plain numbers, by table: ``StorePlan`` and
  /// verifying do not name them.
  public var plainColumns: [SQLName: Set<SQLName>] = [:]
  /// How concurrent changes merge, by table. Fixed when the document is
  /// created.
  public var tableMergeTypes: [SQLName: TableMergeType] = [:]
  /// How concurrent changes to a column merge: table, then column. Fixed when
  /// the document is created.
  public var columnMergeTypes: [SQLName: [SQLName: ColumnMergeType]] = [:]
  /// Tables in which no row stands in for a row that lost a unique value: the rows that refer to
  /// that row are parked with it. Fixed when the document is created.
  public var tablesWithoutStandIns: Set<SQLName> = []
  /// Tables in which a framework records its migrations, besides those that are known by their
  /// names, such as `grdb_migrations`; `Documentation/Schemas.md` lists these.
  ///
  /// Such a table is a part of the schema. Its rows are in whole stores, from which other devices
  /// take the schema, and never in change sets: each device migrates its own database. To keep the
  /// rows out of whole stores as well, name the table in ``excludedTables``.
  public var schemaTables: Set<SQLName> = []

  /// Creates a configuration with the defaults for everything.
  public init() {}

  /// Reads a configuration. One that an earlier build has written may lack the newer settings.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    excludedTables = try values.decode(Set<SQLName>.self, forKey: .excludedTables)
    excludedColumns = try values.decode([SQLName: Set<SQLName>].self, forKey: .excludedColumns)
    identities = try values.decode([SQLName: Identity].self, forKey: .identities)
    references = try values.decode([SQLName: [SQLName: SQLName]].self, forKey: .references)
    tableMergeTypes = try values.decode([SQLName: TableMergeType].self, forKey: .tableMergeTypes)
    columnMergeTypes = try values.decode(
      [SQLName: [SQLName: ColumnMergeType]].self, forKey: .columnMergeTypes)
    plainColumns =
      try values.decodeIfPresent([SQLName: Set<SQLName>].self, forKey: .plainColumns) ?? [:]
    tablesWithoutStandIns =
      try values.decodeIfPresent(Set<SQLName>.self, forKey: .tablesWithoutStandIns) ?? []
    schemaTables =
      try values.decodeIfPresent(Set<SQLName>.self, forKey: .schemaTables) ?? []
  }
}

extension StoreConfiguration: StoredValue {
  /// There are none.
  package func checkNumbers() throws {}
}
