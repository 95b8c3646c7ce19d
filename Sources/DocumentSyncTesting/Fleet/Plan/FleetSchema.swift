import SyncModel

/// A random schema. The simulation writes it as SQL; the oracle uses it without parsing SQL.
struct FleetSchema: Hashable, Sendable {
  var tables: [FleetTable] { didSet { relations = FleetRelations() } }
  /// The application's own triggers, as SQL. Their changes are ordinary edits, so the oracle need
  /// not know the triggers.
  var triggers: [String] = []
  /// Tables without a primary key, which are excluded.
  var looseTables: [LooseTable] = []
  /// Excluded tables that refer to others.
  var markTables: [MarkTable] = []
  /// Whether programs write values at the limits.
  var hasOddValues = false
  /// Whether it has names that must be quoted and are easily taken for others, and such keys.
  var hasHostileNames = false
  /// Whether text is stored in UTF-16.
  var isWide = false

  /// What was computed about the tables, since the oracle asks the same questions very often.
  private var relations = FleetRelations()

  init(tables: [FleetTable]) { self.tables = tables }

  /// A table without a primary key.
  struct LooseTable: Hashable, Sendable {
    var name: SQLName
    /// The statement that creates it.
    var sql: String
  }

  /// An excluded table with a reference, to a synchronized table or another such table.
  struct MarkTable: Hashable, Sendable {
    var name: SQLName
    var parent: SQLName
    var parentKey: SQLName
    var onDelete: FleetReference.Action
    var onUpdate: FleetReference.Action
    var isWithoutRowid: Bool
    /// Whether no two rows refer to one row.
    var isUnique = false

    /// The statement that creates it.
    var sql: String {
      "CREATE TABLE \(name.sql) (id INTEGER PRIMARY KEY, p \(isUnique ? "UNIQUE " : "")REFERENCES \(parent.sql) "
        + "(\(parentKey.sql)) ON DELETE \(onDelete.rawValue) ON UPDATE \(onUpdate.rawValue))"
        + (isWithoutRowid ? " WITHOUT ROWID" : "")
    }
  }

  /// The statements that create the schema.
  var sql: [String] {
    tables.flatMap(\.sql) + looseTables.map(\.sql) + markTables.map(\.sql) + triggers
  }

  func table(_ name: SQLName) -> FleetTable? { tables.first { $0.name == name } }

  func position(of table: SQLName) -> Int? { tables.firstIndex { $0.name == table } }

  /// The tables that take part in syncing.
  var synchronized: [FleetTable] { tables.filter { !$0.isLocal } }

  /// Returns the table whose integer key a column contains, directly or through references from the
  /// column or to it; `nil` if its values are the same on all devices.
  ///
  /// - Parameter table: A table of the schema, as the schema has it.
  func keyTable(of column: Int, in table: FleetTable) -> SQLName? {
    relations.keyTables(of: table) {
      table.columns.indices.map { findKeyTable(of: $0, in: table) }
    }[
      column]
  }

  private func findKeyTable(of column: Int, in table: FleetTable) -> SQLName? {
    var seen: Set<SQLName> = []
    func follow(_ column: Int, _ table: FleetTable) -> SQLName? {
      guard seen.insert("\(table.name).\(column)").inserted else { return nil }
      if table.integerKey == column { return table.name }
      for reference in table.references {
        guard let position = reference.columns.firstIndex(of: column),
          let parent = self.table(reference.parent)
        else { continue }
        if let found = follow(reference.parentColumns[position], parent) { return found }
      }
      for child in tables {
        for reference in child.references where reference.parent == table.name {
          guard let position = reference.parentColumns.firstIndex(of: column) else { continue }
          if let found = follow(reference.columns[position], child) { return found }
        }
      }
      return nil
    }
    return follow(column, table)
  }
}

extension FleetSchema {
  /// Returns whether a column of a table's key contains keys of another table without an enforced
  /// reference of its own. A number in it that refers to no row should not become the key of a row;
  /// `Documentation/Merging.md` names this limit.
  func hasPlainKeys(_ table: FleetTable) -> Bool {
    table.key.contains { column in
      table.integerKey != column && keyTable(of: column, in: table) != nil
        && !table.references.contains { $0.columns.contains(column) && $0.isEnforced }
    }
  }

  /// Returns whether a row is hidden while the row to which a reference leads is not shown. It is
  /// not if SQLite does not enforce the reference and the reference is part of the key, unless the
  /// number in it is that of a row with declared columns.
  func isRequired(_ reference: FleetReference, of table: FleetTable) -> Bool {
    reference.isEnforced
      || !reference.columns.allSatisfy { column in
        table.key.contains(column)
          && keyTable(of: column, in: table).flatMap(self.table)?.localKey == nil
      }
  }

  /// Returns the references of a table as merging treats them. They include implied references of
  /// single columns: of a column that contains a key only in a reference with a nullable column, or
  /// only because another column refers to it.
  ///
  /// - Parameter table: A table of the schema, as the schema has it.
  func references(of table: FleetTable) -> [FleetReference] {
    relations.references(of: table) { findReferences(of: table) }
  }

  private func findReferences(of table: FleetTable) -> [FleetReference] {
    let implied = table.columns.indices.compactMap { column -> FleetReference? in
      guard table.integerKey != column,
        let name = keyTable(of: column, in: table), let parent = self.table(name),
        let key = parent.integerKey,
        !table.references.contains(where: { $0.columns == [column] }),
        table.references.contains(where: { reference in
          reference.columns.contains(column)
            && reference.columns.contains { other in
              other != column && !table.columns[other].isNotNull && !table.key.contains(other)
            }
        }) || !table.references.contains(where: { $0.columns.contains(column) })
      else { return nil }
      return FleetReference(
        columns: [column], parent: name, parentColumns: [key],
        parentNames: [parent.columns[key].name], onDelete: .setNull,
        onUpdate: .noAction, isDeferred: false, isEnforced: false)
    }
    return implied + table.references
  }
}

/// A table of a ``FleetSchema``.
struct FleetTable: Hashable, Sendable {
  var name: SQLName
  var columns: [FleetColumn]
  /// The positions of the columns of the identity: those of the primary key, or declared ones.
  var key: [Int]
  /// The position of the `INTEGER PRIMARY KEY` of a table that is identified by declared columns.
  var localKey: Int?
  /// Whether the key is a single `INTEGER PRIMARY KEY`.
  var hasSurrogateKey = false
  var isAutoincrement = false
  var isWithoutRowid = false
  var isStrict = false
  /// Whether the table stays on each device.
  var isLocal = false
  var references: [FleetReference] = []
  var uniques: [FleetUnique] = []
  var checks: [FleetCheck] = []
  var mergeType = TableMergeType.latestWins
  /// Whether the row that has a unique value stands in for the rows that lost it.
  var hasStandIns = true

  /// Whether all columns of a row are one register.
  var hasWholeRows: Bool { [.wholeRow, .keepBoth].contains(mergeType) }

  /// The integer key that differs from device to device.
  var integerKey: Int? { hasSurrogateKey ? key[0] : localKey }

  /// Whether the key is an `INTEGER PRIMARY KEY` that identifies its rows on all devices, since it
  /// refers to the rows of another table.
  var hasRowidKey: Bool {
    !hasSurrogateKey && localKey == nil && !isWithoutRowid && key.count == 1
      && columns[key[0]].type == .integer && columns[key[0]].declaredType == nil
  }

  /// Returns whether different values of a column can be one key, so that it stores the spelling in
  /// addition to the identity.
  func isLoose(_ column: Int, in schema: FleetSchema) -> Bool {
    let type = columns[column].type
    return schema.keyTable(of: column, in: self) == nil
      && (columns[column].collation != .binary || type == .any || type == .blob)
  }

  /// Returns whether a column is a part of the identity and contains nothing else.
  func isPureIdentity(_ column: Int, in schema: FleetSchema) -> Bool {
    key.contains(column) && !isLoose(column, in: schema)
  }

  /// Whether rows can have NULL in their key.
  var canLoseKeys: Bool {
    !hasSurrogateKey && !hasRowidKey && !isWithoutRowid && !isStrict
      && key.contains { !columns[$0].isNotNull }
  }

  /// The collations of the key's columns.
  var keyCollations: [KeyCollation] { key.map { columns[$0].collation } }

  func position(of column: SQLName) -> Int? { columns.firstIndex { $0.name == column } }

  /// Returns whether an index has no condition and every term is a column that programs can set.
  func isPlain(_ unique: FleetUnique) -> Bool {
    unique.condition == nil && unique.columns.count == unique.terms.count
      && unique.columns.allSatisfy { columns[$0].generated == nil }
  }

  /// The columns that programs can set.
  var settable: [Int] { columns.indices.filter { columns[$0].generated == nil } }

  /// The columns that devices share, without an integer key that differs between them.
  var shared: [Int] {
    settable.filter { !columns[$0].isLocal && $0 != integerKey }
  }
}

/// A column of a ``FleetTable``.
struct FleetColumn: Hashable, Sendable {
  enum DataType: String, Sendable, CaseIterable {
    case integer = "INTEGER"
    case text = "TEXT"
    case real = "REAL"
    case blob = "BLOB"
    case any = "ANY"
  }

  var name: SQLName
  var type: DataType
  var collation = KeyCollation.binary
  var isNotNull = false
  /// The default value as an SQL literal.
  var defaultValue: String?
  /// The expression of a generated column.
  var generated: String?
  var isStored = false
  /// Whether the column stays on each device.
  var isLocal = false
  /// Whether edits add up.
  var isCounter = false
  /// The type with which it is declared, as SQL, if that is not ``type``. Programs write values of
  /// ``type``.
  var declaredType: String?
  /// Whether migrations give it another affinity, or what it refers to, or what refers to it.
  var changesForm = false

  /// Returns a key's value as the column stores it. Identities contain whole numbers as integers.
  func stored(_ value: Value) -> Value {
    if type == .real, case .integer(let integer) = value { return .real(Double(integer)) }
    return value
  }

  /// Returns a number as the column stores it.
  func storedNumber(_ value: Value) -> Value {
    if type == .integer, case .real(let real) = value, let integer = Int64(exactly: real),
      integer > .min, integer < .max
    {
      return .integer(integer)
    }
    return stored(value)
  }
}

/// A foreign key of a ``FleetTable``.
struct FleetReference: Hashable, Sendable {
  enum Action: String, Sendable, CaseIterable {
    case noAction = "NO ACTION"
    case restrict = "RESTRICT"
    case cascade = "CASCADE"
    case setNull = "SET NULL"
    case setDefault = "SET DEFAULT"
  }

  var columns: [Int]
  var parent: SQLName
  var parentColumns: [Int]
  var parentNames: [SQLName]
  var onDelete: Action
  var onUpdate: Action
  var isDeferred: Bool
  /// Whether the reference is a foreign key; if not, SQLite does not know it.
  var isEnforced = true
}

/// A unique index of a ``FleetTable``.
struct FleetUnique: Hashable, Sendable {
  enum Term: Hashable, Sendable {
    case column(Int, KeyCollation)
    /// An SQL expression.
    case expression(String)
  }

  var name: SQLName
  var terms: [Term]
  var condition: String?

  var columns: [Int] {
    terms.compactMap { if case .column(let column, _) = $0 { column } else { nil } }
  }

  func collation(_ term: Term) -> KeyCollation {
    if case .column(_, let collation) = term { collation } else { .binary }
  }
}

/// A CHECK of a ``FleetTable``.
struct FleetCheck: Hashable, Sendable {
  var condition: String
  /// The positions of the columns that the condition names.
  var columns: [Int]
}
