import GRDB
import SyncModel

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
  /// Whether a constraint has a conflict clause, such as ON CONFLICT REPLACE.
  var hasConflictClause = false
  /// The words that keep such a clause from taking effect. Elsewhere they would take effect in place of
  /// the conflict clauses of statements in triggers, such as INSERT OR IGNORE.
  var orAbort: String { hasConflictClause ? " OR ABORT" : "" }
  /// The SQL of the CHECK conditions, without those that read a column that stays on this device.
  var checks: [String] = []
  /// The SQL of expressions that are 1 for a row that breaks one of ``checks``, and otherwise 0.
  ///
  /// As SQLite does for a constraint, CASE evaluates what comes after OR only if it has to: in
  /// `kind = 'text' OR json_extract(body, '$.v') > 0` it fails for a text. Elsewhere in a query SQLite
  /// evaluates all of it.
  var brokenChecks: [String] { checks.map { "CASE WHEN NOT (\($0)) THEN 1 ELSE 0 END" } }
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
