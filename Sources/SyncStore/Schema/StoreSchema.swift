import GRDB
import SyncModel

/// The synchronized part of a store's schema, as bookkeeping sees it.
struct StoreSchema {
  /// The synchronized tables, in order of their ids.
  let tables: [TableSchema]
  /// The tables that are not synchronized, and why.
  var leftOut: [SQLName: StoreStatus.LeftOutReason]
  /// The tables among them that cannot be synchronized, by name.
  var problems: [SQLName: TableProblem] = [:]
  /// The names of registered tables that cannot be synchronized at present, by their numbers. If there are any, the
  /// store synchronizes nothing, and its bookkeeping stays as it is.
  var suspendedTables: [Int: SQLName] = [:]
  /// The tables that this connection can neither read nor write, since their definitions need
  /// functions or collations of the application.
  var undefined: Set<SQLName> = []
  /// The excluded tables that do not exist any more.
  var missingExclusions: [SQLName] = []

  private let positions: [Int: Int]
  private let names: [SQLName: Int]
  private let inbound: [Int: [ForeignKey]]
  private let wireNames: [SQLName: Int]
  private let allNamers: [Int: [Namer]]

  /// A column of a table's identity that contains keys of another table.
  struct Namer: Hashable {
    var table: Int
    var column: Int
  }

  init(tables: [TableSchema], leftOut: [SQLName: StoreStatus.LeftOutReason]) {
    self.tables = tables
    self.leftOut = leftOut
    positions = Dictionary(uniqueKeysWithValues: tables.enumerated().map { ($1.id, $0) })
    inbound = Dictionary(grouping: tables.flatMap(\.foreignKeys), by: \.parent)
    names = Dictionary(
      uniqueKeysWithValues: tables.enumerated().map { ($1.name.folded, $0) })
    wireNames = Dictionary(
      tables.enumerated().map { ($1.wireName, $0) }, uniquingKeysWith: min)
    allNamers = Self.namers(tables)
  }

  /// Returns the schema with other descriptions of the same tables.
  func with(_ tables: [TableSchema]) -> StoreSchema {
    var schema = StoreSchema(tables: tables, leftOut: leftOut)
    schema.problems = problems
    schema.suspendedTables = suspendedTables
    schema.undefined = undefined
    schema.missingExclusions = missingExclusions
    return schema
  }

  /// The numbers of the ``suspendedTables``.
  var suspended: Set<Int> { Set(suspendedTables.keys) }

  /// Returns whether bookkeeping may contain rows of a table that the schema does not have: while the
  /// store synchronizes nothing, bookkeeping is as it was before the schema changed.
  func passesOver(_ id: Int) -> Bool { !suspendedTables.isEmpty && !contains(id) }

  /// The names of the ``suspendedTables``.
  var suspendedNames: Set<SQLName> { Set(suspendedTables.values) }

  /// The tables whose rows stay on the device: the excluded ones, and those that cannot be
  /// synchronized.
  var localTables: [SQLName] {
    leftOut.filter { $0.value == .excluded || $0.value.isProblem }.keys.sorted()
  }

  /// Returns the columns of other tables' identities that contain keys of a table, if rows of these
  /// tables can be shown although the row with the key is not. The numbers in such columns stand for
  /// their row as long as a row contains them. Returns none otherwise.
  func namers(of table: Int) -> [Namer] { allNamers[table] ?? [] }

  /// Whether any table has such columns (``namers(of:)``).
  var hasNamers: Bool { !allNamers.isEmpty }

  /// The tables that have such columns (``namers(of:)``).
  var namedTables: [TableSchema] { allNamers.keys.sorted().map { self[$0] } }

  private static func namers(_ tables: [TableSchema]) -> [Int: [Namer]] {
    var named: Set<Int> = []
    var namers: [Int: [Namer]] = [:]
    let surrogates = Set(tables.filter { $0.identity == .surrogate }.map(\.id))
    for table in tables {
      for position in table.identityPositions {
        guard case .key(let parent) = table.columns[position].domain, surrogates.contains(parent)
        else { continue }
        namers[parent, default: []].append(Namer(table: table.id, column: position))
        if table.foreignKeys.contains(where: { !$0.isRequired && $0.columns == [position] }) {
          named.insert(parent)
        }
      }
    }
    return namers.filter { named.contains($0.key) }
  }

  /// The table with a number, which must exist: a number that was read from bookkeeping is checked
  /// first (``contains(_:)``).
  subscript(id: Int) -> TableSchema {
    guard let position = positions[id] else { preconditionFailure("no table has the id \(id)") }
    return tables[position]
  }

  /// Returns whether there is a table with an id.
  func contains(_ id: Int) -> Bool { positions[id] != nil }

  func table(named name: SQLName) -> TableSchema? {
    names[name.folded].map { tables[$0] }
  }

  /// Returns the table that has this name in change sets.
  func table(wireName: SQLName) -> TableSchema? { wireNames[wireName].map { tables[$0] } }

  /// Returns the foreign keys that refer to a table.
  func inbound(to table: TableSchema) -> [ForeignKey] { inbound(to: table.id) }

  /// Returns the foreign keys that refer to the table with an id.
  func inbound(to table: Int) -> [ForeignKey] { inbound[table] ?? [] }

  /// Returns the tables to which the given tables refer, directly or through others.
  func ancestors(of tables: Set<Int>) -> Set<Int> {
    var found: Set<Int> = []
    var next = Array(tables)
    while let table = next.popLast() {
      next += self[table].foreignKeys.map(\.parent).filter { found.insert($0).inserted }
    }
    return found
  }

  /// Returns the tables whose rows have identities that contain those of rows in the given tables,
  /// directly or through others.
  func tablesNamed(after parents: Set<Int>) -> Set<Int> {
    var found: Set<Int> = []
    var count: Int
    repeat {
      count = found.count
      for table in tables {
        let isNamed = table.identityPositions.contains {
          guard case .key(let parent) = table.columns[$0].domain else { return false }
          return parents.contains(parent) || found.contains(parent)
        }
        if isNamed { found.insert(table.id) }
      }
    } while found.count > count
    return found
  }

  /// Returns whether a table that refers to this one has unique indexes.
  func isReferredUniquely(_ table: TableSchema) -> Bool {
    inbound(to: table).contains { !self[$0.child].uniqueIndexes.isEmpty }
  }

  /// A hash over tables, identities, merge types, and columns with affinities and collations. It is
  /// equal for stores between which changes can be exchanged freely.
  var fingerprint: ContentHash {
    var text = ""
    for table in tables.sorted(by: { $0.wireName < $1.wireName }) {
      text += "table \(quoted(table.wireName)) \(table.identity.kind) \(table.mergeType)"
      for column in table.columns.sorted(by: { $0.wireName < $1.wireName }) {
        text += " \(quoted(column.wireName)) \(column.affinity) \(column.collation)"
        text += column.isIdentity ? " key" : ""
      }
      text += "\n"
    }
    return ContentHash(of: Array(text.utf8))
  }
}

/// A synchronized table.
struct TableSchema {
  /// How rows are identified; the numbers are positions in ``columns``.
  enum Identity: Hashable {
    case primaryKey([Int])
    case surrogate
    case columns([Int])

    var kind: IdentityKind {
      switch self {
      case .primaryKey: .primaryKey
      case .surrogate: .surrogate
      case .columns: .columns
      }
    }
  }

  /// The number that names the table in bookkeeping.
  var id: Int
  var name: SQLName
  /// The name in change sets: the one that the table had when it was registered, even if it was
  /// renamed since.
  var wireName: SQLName
  var identity: Identity
  /// The synchronized columns, without generated ones and a local key; the position is the bit in
  /// the log's masks.
  var columns: [ColumnSchema]
  /// Names, in lower case, of columns that stay on this device.
  var excludedColumns: Set<SQLName> = []
  /// The names, in lower case, of these columns on devices that do not exclude them.
  var excludedNames: Set<SQLName> = []
  /// The integer key, if rows have one beside their identity: in surrogate tables and in those with
  /// declared identity columns.
  var localKey: SQLName?
  /// The column that is another name of the rowid, whether it is the local
  /// key or, by choice, the identity.
  var rowidAlias: SQLName?
  /// The table to which the local key refers, if an earlier version nevertheless gave the rows
  /// identities of their own: on other devices the rows may have the numbers of other rows of that
  /// table.
  var misidentifiedParent: SQLName?
  /// The names of all columns, including generated and excluded ones and the local key.
  var allColumns: [SQLName] = []
  var generatedColumns: [GeneratedColumn] = []
  var isWithoutRowid: Bool
  /// Whether the table may have rows without stamps, which are older than syncing.
  var hasUnstampedRows: Bool
  /// The first half of the identities of rows with surrogate keys that existed before syncing
  /// began.
  var origin: UInt64
  var foreignKeys: [ForeignKey]
  /// How concurrent changes to the rows merge.
  var mergeType = TableMergeType.latestWins
  /// Whether the row that holds a unique value stands in for rows that lost it and to which other
  /// rows refer.
  var hasStandIns = true
  /// The number of columns that SQLite allows in a table and in a result, unless it is built
  /// otherwise.
  static let greatestColumnCount = 2_000

  /// Whether bookkeeping can have a log of the table. A log has columns of its own, the key of a row
  /// twice and the values of the row.
  var isLoggable: Bool {
    columns.count + 2 * keyColumns.count + 10 <= Self.greatestColumnCount
  }

  /// Positions of columns whose edits add up.
  var counters: [Int] { columns.indices.filter { columns[$0].domain == .counter } }
  /// Whether another table refers to this one, or an excluded table or column does: then change sets
  /// say what becomes of a row whose key changes.
  var isReferred = false
  /// The columns whose values SQLite may convert to numbers before triggers read them: see
  /// ``CaptureTriggers``.
  var convertibleColumns: [SQLName] = []
  /// Whether bookkeeping stores the cells of deleted rows, since such a row can come back: an edit
  /// may win over the deletion, or another table's foreign key would have refused to delete it.
  var keepsDeleted = false
  /// Columns that are one register with others, by position: those of a
  /// composite foreign key, and those that one CHECK names.
  var registers: [Int: ColumnSet] = [:]
  /// The SQL of the CHECK conditions, without those that read a column that stays on this device.
  var checks: [String] = []
  /// The unique indexes apart from the one of the identity.
  var uniqueIndexes: [UniqueIndex]

  var quotedName: String { quoted(name) }
  var logName: String { Self.logName(of: id) }
  var identityName: String { "docsync_id_\(id)" }
  var stampsName: String { "docsync_stamps_\(id)" }

  /// Returns the name of the log of the table with a number.
  static func logName(of id: Int) -> String { "docsync_log_\(id)" }

  /// A pattern of GLOB for the names of the logs of all tables.
  static let logPattern = "docsync_log_[0-9]*"

  /// The columns by which the log and the lookups name a row: the identity's,
  /// or the local key of a surrogate table.
  var keyColumns: [SQLName] {
    switch identity {
    case .surrogate: [localKey ?? "rowid"]
    case .primaryKey(let positions), .columns(let positions):
      positions.map { columns[$0].name }
    }
  }

  /// The names of ``keyColumns`` in change sets.
  var wireKeyColumns: [SQLName] {
    identity == .surrogate ? keyColumns : identityPositions.map { columns[$0].wireName }
  }

  /// Returns whether a change set identifies the rows of the table as this store does.
  func knowsRows(as changes: TableChanges) -> Bool {
    changes.identity == identity.kind
      && (identity == .surrogate || changes.keyColumns == wireKeyColumns)
  }

  /// Positions of the identity's columns; empty for surrogates.
  // Inlined, as below: the steps of merging ask for every row, and a call would copy the table.
  @inline(__always)
  var identityPositions: [Int] {
    switch identity {
    case .surrogate: []
    case .primaryKey(let positions), .columns(let positions): positions
    }
  }

  /// Whether some columns of the identity are keys of rows.
  @inline(__always)
  var hasKeysInIdentity: Bool { identityPositions.contains { columns[$0].isKeyed } }

  /// Whether rows are identified by references, in whole or in part.
  var isKnownByReferences: Bool {
    foreignKeys.contains { key in key.columns.contains { columns[$0].isIdentity } }
  }

  /// Positions of the columns whose values change sets carry as cells: all outside the identity,
  /// and those of it whose spelling can change while the identity stays.
  var cellPositions: [Int] {
    columns.indices.filter { !columns[$0].isIdentity || columns[$0].isLoose }
  }

  /// Whether merging a row of this table takes more than writing its newer cells, because it can
  /// concern other rows or because of a merge type.
  var isEntangled: Bool {
    !foreignKeys.isEmpty || !uniqueIndexes.isEmpty || !counters.isEmpty
      || mergeType == .editWins || mergeType == .keepBoth
  }

  /// The columns whose values the log records: those of a deleted row, and, for ``baseColumns``,
  /// those before an update.
  var recordedColumns: [Int] { keepsDeleted ? cellPositions : baseColumns }

  /// Positions of the columns whose value before an edit a policy of this device may need.
  var policyColumns: [Int] = []

  /// The columns whose value before an edit is needed.
  var baseColumns: [Int] {
    policyColumns.isEmpty ? counters : Set(counters).union(policyColumns).sorted()
  }
}

/// A synchronized column.
struct ColumnSchema: Hashable {
  enum Affinity: String { case integer, text, blob, real, numeric }
  /// What the values stand for.
  enum Domain: Hashable {
    /// Themselves.
    case plain
    /// The key of a row in the table with this id; it differs from device to device.
    case key(of: Int)
    /// Numbers to which all edits add up (``CounterValue``).
    case counter
  }

  var name: SQLName
  /// The name in change sets: the one that the column had when it was registered, even if it was
  /// renamed since.
  var wireName: SQLName
  var affinity: Affinity
  var collation: String
  var domain: Domain
  var isIdentity: Bool
  var isNotNull: Bool
  /// The SQL of the value that the column takes when it is left out.
  var defaultExpression: String?

  /// Whether the values are keys of rows.
  var isKeyed: Bool { if case .key = domain { true } else { false } }

  /// Whether two values can be equal to SQLite and still differ.
  var isLoose: Bool { domain == .plain && (collation != "BINARY" || affinity == .blob) }

  var keyCollation: KeyCollation {
    switch collation.uppercased() {
    case "NOCASE": .nocase
    case "RTRIM": .rtrim
    default: .binary
    }
  }
}

/// A column that SQLite computes from others.
struct GeneratedColumn: Hashable {
  var name: SQLName
  var affinity: ColumnSchema.Affinity
  var collation: String
  /// The SQL by which it is computed.
  var expression: String
}

/// A reference from one table to another, declared or implied.
struct ForeignKey: Hashable {
  /// The action on a row when the row that it refers to is deleted.
  enum DeleteAction: Hashable {
    /// RESTRICT and NO ACTION: the other row must not be deleted.
    case refuse
    case cascade
    case setNull
    case setDefault
  }

  /// A number that is unique in the schema as it was read.
  var ordinal: Int
  var child: Int
  /// Positions of the child's columns.
  var columns: [Int]
  var parent: Int
  /// The parent's columns, by name: its local key may be among them.
  var parentColumns: [SQLName]
  var onDelete: DeleteAction
  /// Whether SQLite enforces it. If not, it follows from other references, or was declared when
  /// syncing began; a value that leads to no row then stays as it is.
  var isEnforced = true
  /// Whether a row is hidden while the row to which it refers is not shown. It is not if SQLite does
  /// not enforce the reference and the reference is part of the row's key: then nothing can be shown
  /// in place of the key (``StoreSchema/namers(of:)``).
  var isRequired = true

  /// Whether a row that this key refers to must not be deleted alone.
  var holds: Bool { onDelete == .refuse || onDelete == .cascade }
}

/// A unique index: at most one row may have each key.
struct UniqueIndex: Hashable {
  /// The number of the index within its table.
  var ordinal: Int
  var name: SQLName
  /// Positions of plain columns; `nil` where an expression is indexed.
  var columns: [Int?]
  var collations: [String]
  /// The SQL of each term.
  var terms: [String]
  /// The SQL of a partial index's condition.
  var condition: String?

  /// Whether every term is a column and there is no condition.
  var isPlain: Bool { condition == nil && columns.allSatisfy { $0 != nil } }
  /// Whether a constraint of the table made the index, so that nothing can drop it.
  var isConstraint: Bool { name.text.hasPrefix("sqlite_autoindex_") }
  /// The positions of the columns among the terms.
  var positions: [Int] { columns.compactMap { $0 } }
}
