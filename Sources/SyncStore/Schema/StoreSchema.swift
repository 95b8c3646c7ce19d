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
