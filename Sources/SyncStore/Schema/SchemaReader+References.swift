import GRDB
import SyncModel

/// References between tables, and the columns that stand for keys.
extension SchemaReader {
  func foreignKeys(
    of table: TableSchema, drafts: [Draft], identifiers: [SQLName: Int], ordinal: inout Int
  ) throws -> [ForeignKey] {
    let rows = try Row.fetchAll(
      database, sql: "PRAGMA main.foreign_key_list(\(quoted(table.name)))")
    var keys: [ForeignKey] = []
    // SQLite numbers them from the last declared to the first.
    for (_, group) in Dictionary(grouping: rows, by: { $0["id"] as Int }).sorted(by: {
      $0.key > $1.key
    }) {
      let terms = group.sorted { ($0["seq"] as Int) < ($1["seq"] as Int) }
      let parentName: SQLName = terms[0]["table"]
      guard let parent = drafts.first(where: { $0.name.folded == parentName.folded })
      else {
        try checkReference(from: table, terms, to: parentName)
        continue
      }
      let positions = terms.map { term in
        table.columns.firstIndex {
          $0.name.folded == (term["from"] as SQLName).folded
        }
      }
      // A reference through an excluded or generated column, or through the
      // local key itself, cannot be followed on another device.
      guard !positions.contains(nil) else { continue }
      let named = terms.map { $0["to"] as SQLName? }
      keys.append(
        ForeignKey(
          ordinal: ordinal, child: table.id, columns: positions.compactMap { $0 },
          parent: parent.id,
          parentColumns: named.contains(nil) ? parent.primaryKey : named.compactMap { $0 },
          onDelete: ForeignKey.DeleteAction(sql: terms[0]["on_delete"])))
      ordinal += 1
    }
    for (column, target) in (lookup(configuration.references, table.wireName) ?? [:]).sorted(by: <)
    {
      if problems.values.contains(where: { $0.wireName.isSame(as: target) }),
        table.columns.contains(where: { $0.wireName.isSame(as: column) })
      {
        throw reference(from: table.name, to: target)
      }
      guard
        let position = table.columns.firstIndex(where: {
          $0.wireName.folded == column.folded
        }), let parentID = identifiers[target.folded],
        let parent = drafts.first(where: { $0.id == parentID }), parent.primaryKey.count == 1
      else {
        // The application may have dropped either since.
        if isUnderSync { continue }
        throw StoreError(
          .badConfiguration, path: path,
          message: "\(quoted(table.name)).\(quoted(column)) cannot refer to \(quoted(target)).",
          remedy: "Name a synchronized column, and a synchronized table with a single key column.")
      }
      keys.append(
        ForeignKey(
          ordinal: ordinal, child: table.id, columns: [position], parent: parentID,
          parentColumns: parent.primaryKey, onDelete: .setNull, isEnforced: false))
      ordinal += 1
    }
    return keys
  }

  /// Refuses a reference to a table that is excluded or cannot be synchronized: on another device
  /// it would lead nowhere.
  func checkReference(from table: TableSchema, _ terms: [Row], to parent: SQLName) throws {
    let isExcludedColumn = terms.contains {
      table.excludedColumns.contains(($0["from"] as SQLName).folded)
    }
    if isExcludedColumn { return }
    let column: SQLName = terms[0]["from"]
    if let problem = problems.values.first(where: { $0.table.isSame(as: parent) }) {
      throw reference(from: table.name, to: problem.table)
    }
    guard configuration.excludedTables.contains(where: { $0.folded == parent.folded }) else {
      return
    }
    throw TableProblem(
      table.name, .reference, code: .badConfiguration,
      message: "The table \(quoted(table.name)) refers to the excluded table \(quoted(parent)).",
      remedy: "Keep \(parent), or exclude the referring columns as well with "
        + "\(.exclude(table.name, column: column)).",
      later: "To synchronize it, remove the reference.")
  }

  /// Returns the problem of a table that refers to a table that cannot be synchronized.
  private func reference(from table: SQLName, to parent: SQLName) -> TableProblem {
    TableProblem(
      table, .reference,
      message: "The table \(quoted(table)) refers to the table \(quoted(parent)), which cannot be "
        + "synchronized.",
      remedy: "Change \(parent), or leave out \(table) as well with \(.exclude(table)).",
      later: "It is synchronized once \(quoted(parent)) is.")
  }

  /// Refuses a registered table of which a column contains keys of a table that was synchronized and
  /// cannot be now. Otherwise the numbers in the column would count as plain values.
  ///
  /// - Parameter suspended: The names of such tables, by number.
  func checkRecordedReferences(
    of name: SQLName, _ known: Registered?, suspended: [Int: SQLName]
  ) throws {
    guard let known, !suspended.isEmpty else { return }
    let present = Set(
      try SQLName.fetchAll(
        database, sql: "SELECT name FROM pragma_table_xinfo(?, 'main')", arguments: [name]
      ).map { $0.folded })
    // The application may have dropped a column since.
    for (column, parent) in zip(known.columns, known.references)
    where present.contains(column.folded) {
      if let parent = parent.flatMap({ suspended[$0] }) { throw reference(from: name, to: parent) }
    }
  }

  /// Lets columns that have lost their foreign key still stand for keys of the same table: dropping a
  /// condition does not change what the numbers mean, and they are others on every device.
  ///
  /// A column that holds texts now is meant otherwise.
  func keepReferences(of tables: inout [TableSchema], _ registered: [SQLName: Registered]) {
    let keyed = Set(tables.filter { $0.localKey != nil }.map(\.id))
    for index in tables.indices {
      guard let known = registered[tables[index].name], known.id == tables[index].id else {
        continue
      }
      for position in tables[index].columns.indices {
        let column = tables[index].columns[position]
        guard column.affinity != .text,
          !tables[index].foreignKeys.contains(where: { $0.columns.contains(position) }),
          let bit = known.wireColumns.firstIndex(of: column.wireName),
          let parent = known.references[bit], keyed.contains(parent)
        else { continue }
        tables[index].columns[position].domain = .key(of: parent)
      }
    }
  }

  /// Finds the columns that stand for keys of rows: those that refer, through any number of tables,
  /// to a local key. If such a column refers to another column, that column stands for the key too:
  /// both hold the same values. Throws if a column would stand for keys of several tables.
  func resolveDomains(_ tables: inout [TableSchema], _ registered: [SQLName: Registered]) throws {
    let positions = Dictionary(uniqueKeysWithValues: tables.enumerated().map { ($1.id, $0) })
    /// Returns whether the column is registered with values that stand for themselves.
    func isRegistered(_ column: ColumnSchema, of table: TableSchema) -> Bool {
      guard let known = registered[table.name],
        let bit = known.columns.firstIndex(where: { $0.isSame(as: column.name) })
      else { return false }
      return known.references[bit] == nil
    }
    var isSettled = false
    while !isSettled {
      isSettled = true
      for index in tables.indices {
        for key in tables[index].foreignKeys {
          guard let parentIndex = positions[key.parent] else { continue }
          for (column, target) in zip(key.columns, key.parentColumns) {
            let own = tables[index].columns[column].domain
            let (position, domain) = tables[parentIndex].referred(target)
            if domain != .plain, own == .plain {
              tables[index].columns[column].domain = domain
              isSettled = false
            } else if domain == .plain, case .key = own, let position,
              !isRegistered(tables[parentIndex].columns[position], of: tables[parentIndex])
            {
              tables[parentIndex].columns[position].domain = own
              isSettled = false
            }
          }
        }
      }
    }
    for table in tables {
      for key in table.foreignKeys {
        guard let parent = positions[key.parent].map({ tables[$0] }) else { continue }
        for (position, target) in zip(key.columns, key.parentColumns) {
          let column = table.columns[position]
          let (referred, domain) = parent.referred(target)
          guard referred != nil || domain != .plain, column.domain.isKey || domain.isKey,
            column.domain != domain, !isRegistered(column, of: table)
          else { continue }
          throw ambiguous(column, of: table, tables)
        }
      }
    }
  }

  /// Returns the error for a column that refers to rows of several tables: each device has its own
  /// keys in each of the tables, so no value stands for rows of two tables on every device.
  private func ambiguous(
    _ column: ColumnSchema, of table: TableSchema, _ tables: [TableSchema]
  ) -> TableProblem {
    let parents = table.foreignKeys.filter { key in
      key.columns.contains { table.columns[$0].name == column.name }
    }.compactMap { key in tables.first { $0.id == key.parent } }
    let keyed = parents.filter { $0.localKey != nil }.map(\.name)
    return TableProblem(
      table.name, .ambiguousReference,
      message: "The column \(quoted(table.name)).\(quoted(column.name)) refers to rows of "
        + parents.map { quoted($0.name) }.joined(separator: " and of ")
        + " at once, which have other integer keys on every device, each for itself.",
      remedy: keyed.reduce("If those keys are unique across devices, use ") { remedy, table in
        "\(remedy)\(remedy.actions.isEmpty ? "" : " and ")\(.identifyByPrimaryKey(table))"
      }
        + "; else leave the table out with \(.exclude(table.name)).",
      later: "To synchronize it, use a column for each of the tables.")
  }

  /// Adds a reference of its own, like a declared one, for each column that stands for a key only
  /// as a part of a reference, or because other columns refer to it. Otherwise nothing would
  /// maintain the key while another column of the reference is NULL.
  func addImpliedReferences(_ tables: inout [TableSchema], ordinal first: Int) {
    var ordinal = first
    let localKeys = Dictionary(uniqueKeysWithValues: tables.map { ($0.id, $0.localKey) })
    for index in tables.indices {
      let table = tables[index]
      var implied: [ForeignKey] = []
      for column in table.columns.indices {
        guard case .key(let parent) = table.columns[column].domain,
          let name = localKeys[parent] ?? nil,
          !table.foreignKeys.contains(where: { $0.columns == [column] }),
          table.foreignKeys.contains(where: {
            $0.columns.contains(column) && table.canBePartial($0, beside: column)
          }) || !table.foreignKeys.contains(where: { $0.columns.contains(column) })
        else { continue }
        implied.append(
          ForeignKey(
            ordinal: ordinal, child: table.id, columns: [column], parent: parent,
            parentColumns: [name], onDelete: .setNull, isEnforced: false))
        ordinal += 1
      }
      // They come first, so that declared references are laid over them.
      tables[index].foreignKeys = implied + table.foreignKeys
    }
  }

  /// Determines which references hide a row while the row to which they refer is not shown. If the
  /// rows of a table are identified by declared columns, nothing records the integer key of a row
  /// that is gone, so a number in another row's key cannot stand for it.
  func resolveRequirements(_ tables: inout [TableSchema]) {
    let declared = Set(
      tables.filter { if case .columns = $0.identity { true } else { false } }.map(\.id))
    for index in tables.indices {
      let columns = tables[index].columns
      for position in tables[index].foreignKeys.indices {
        let key = tables[index].foreignKeys[position]
        tables[index].foreignKeys[position].isRequired =
          key.isEnforced
          || !key.columns.allSatisfy { column in
            guard columns[column].isIdentity else { return false }
            if case .key(let parent) = columns[column].domain { return !declared.contains(parent) }
            return true
          }
      }
    }
  }

  /// Determines which tables are referred to, and which of them store the cells of deleted rows.
  /// Joins the columns of each composite reference.
  ///
  /// - Parameter staying: The tables that stay on the device.
  func resolveDeletions(_ tables: inout [TableSchema], staying: [SQLName]) throws {
    let keys = tables.flatMap(\.foreignKeys)
    let references = try LocalReference.all(ofTables: staying, orColumnsOf: tables, database)
    let local = Set(references.map(\.parent.folded))
    for index in tables.indices {
      let inbound = keys.filter { $0.parent == tables[index].id }
      tables[index].isReferred = !inbound.isEmpty || local.contains(tables[index].name.folded)
      tables[index].keepsDeleted =
        tables[index].mergeType == .editWins
        || inbound.contains { $0.holds && tables[index].identifies($0) }
      for key in tables[index].foreignKeys where key.columns.count > 1 {
        tables[index].join(key.columns)
      }
    }
    findConvertibleColumns(of: &tables, references)
  }

  /// Finds the columns that may hold texts, and to which columns of numbers refer.
  private func findConvertibleColumns(of tables: inout [TableSchema], _ local: [LocalReference]) {
    for index in tables.indices {
      let table = tables[index]
      let synchronized = tables.flatMap { child in
        child.foreignKeys.filter { $0.parent == table.id && $0.isEnforced }.flatMap { key in
          zip(key.parentColumns, key.columns.map { child.columns[$0].affinity })
        }
      }
      let others = local.filter { $0.parent.isSame(as: table.name) }.flatMap {
        zip($0.parentColumns, $0.affinities)
      }
      tables[index].convertibleColumns = table.columns.filter { column in
        [.text, .blob].contains(column.affinity)
          && (synchronized + others).contains { name, affinity in
            name.isSame(as: column.name) && ![.text, .blob].contains(affinity)
          }
      }.map(\.name)
    }
  }

  /// Reads the CHECK conditions, and joins the columns that one of them reads, directly or through
  /// a generated column: two edits that each meet the condition could break it together.
  func readChecks(of table: inout TableSchema, sql: String) {
    for (condition, text) in SQLTokens(sql).conditions {
      table.join(columns(named: condition, of: table, depth: 0))
      let isPrivate = table.excludedColumns.contains { name in
        condition.contains { $0.isName(name) }
      }
      if !isPrivate { table.checks.append(text) }
    }
  }

  private func columns(
    named tokens: ArraySlice<SQLTokens.Token>, of table: TableSchema, depth: Int
  ) -> [Int] {
    var result: Set<Int> = []
    for token in tokens {
      if let position = table.columns.firstIndex(where: { token.isName($0.name) }) {
        result.insert(position)
      } else if depth < table.generatedColumns.count,
        let generated = table.generatedColumns.first(where: { token.isName($0.name) })
      {
        result.formUnion(
          columns(named: SQLTokens(generated.expression).tokens[...], of: table, depth: depth + 1))
      }
    }
    return result.sorted()
  }
}

extension ForeignKey.DeleteAction {
  init(sql: String) {
    switch sql.uppercased() {
    case "CASCADE": self = .cascade
    case "SET NULL": self = .setNull
    case "SET DEFAULT": self = .setDefault
    default: self = .refuse
    }
  }
}

extension ColumnSchema.Domain {
  fileprivate var isKey: Bool { if case .key = self { true } else { false } }
}

extension TableSchema {
  /// Returns the domain of a column that another column refers to, and its position; the position
  /// is `nil` for the local key and for a column that is not synchronized.
  func referred(_ name: SQLName) -> (position: Int?, domain: ColumnSchema.Domain) {
    if name.folded == localKey?.folded { return (nil, .key(of: id)) }
    let position = columns.firstIndex { $0.name.isSame(as: name) }
    return (position, position.map { columns[$0].domain } ?? .plain)
  }

  /// Returns whether another column of a reference can be NULL.
  fileprivate func canBePartial(_ key: ForeignKey, beside column: Int) -> Bool {
    key.columns.contains { $0 != column && !columns[$0].isNotNull && !columns[$0].isIdentity }
  }

  /// Joins columns to one register, together with those to which they are joined already. Leaves
  /// out columns of the identity, which never change.
  mutating func join(_ columns: [Int]) {
    let cells = columns.filter { !self.columns[$0].isIdentity || self.columns[$0].isLoose }
    guard cells.count > 1 else { return }
    var joined = ColumnSet()
    for column in cells {
      joined.formUnion(ColumnSet(column))
      if let others = registers[column] { joined.formUnion(others) }
    }
    for column in self.columns.indices where joined.contains(column) {
      registers[column] = joined
    }
  }
}
