import GRDB
import SyncModel

/// The recorded tables that programs have both renamed and made again since bookkeeping was renewed.
///
/// SQLite keeps the triggers of a renamed table, and so its number, but not those of one that is made
/// again; the name of the latter tells which one it is. If both happened, foreign keys remain: SQLite
/// rewrites them when a table is renamed. Django does both in one migration, as for a model that is renamed
/// and gets a field.
///
/// What decides is the schema, never the rows of the two tables: all devices must decide alike. A table is
/// no candidate if a device has published it as one of its own, as an earlier build does.
///
/// <https://www.sqlite.org/lang_altertable.html#altertabrename>
struct RenamedTables {
  typealias Registered = SchemaReader.Registered

  let database: Database
  /// The recorded tables that exist, by their present names.
  private(set) var known: [SQLName: Registered]
  /// The recorded tables that neither a trigger nor a name shows.
  private var missing: [Registered]
  /// The ordinary tables, by their names.
  private var shapes: [SQLName: Shape] = [:]
  /// The names of those that may be missing ones.
  private var candidates: [SQLName] = []

  /// What is read of a table that exists.
  private struct Shape {
    var columns: [SQLName] = []
    /// The columns with foreign keys, each with the table to which it refers.
    var references: [(column: SQLName, table: SQLName)] = []

    func contains(_ column: SQLName) -> Bool { columns.contains { $0.isSame(as: column) } }
  }

  init(_ database: Database, known: [SQLName: Registered], missing: [Registered]) throws {
    self.database = database
    self.known = known
    self.missing = missing
    // Another device takes such a table for a new one, or it stays on each device.
    let configuration = try MetaTable.value(
      .configuration, as: StoreConfiguration.self, database)
    let others = Set(
      (try ForeignRows.tableNames(database) + Array(configuration?.excludedTables ?? []))
        .map(\.folded))
    for (name, type) in try TableType.all(database)
    where type == .ordinary && !name.begins(with: "sqlite_") && !name.begins(with: "docsync_") {
      shapes[name] = try Self.shape(of: name, database)
      if known[name] == nil, !others.contains(name.folded) { candidates.append(name) }
    }
    candidates.sort()
  }

  /// Adds the missing tables to the ``known``, as far as exactly one table can be each.
  mutating func find() {
    // A table of links is found once the tables are that it refers to.
    while findNext() {}
  }

  private mutating func findNext() -> Bool {
    var pairs: [(table: Registered, name: SQLName)] = []
    for table in missing {
      for name in candidates {
        if let found = match(table, name) { pairs.append((found, name)) }
      }
    }
    let found = pairs.filter { pair in
      pairs.count { $0.table.id == pair.table.id || $0.name == pair.name } == 1
    }
    for (table, name) in found {
      known[name] = table
      candidates.removeAll { $0 == name }
      missing.removeAll { $0.id == table.id }
    }
    return !found.isEmpty
  }

  /// Returns a missing table with its present columns, if a candidate is that table: the candidate has all
  /// its columns, and either all foreign keys that referred to it lead to the candidate, or it is a table of
  /// links that was renamed after a table to which it refers.
  private func match(_ table: Registered, _ name: SQLName) -> Registered? {
    guard let shape = shapes[name], !table.columns.isEmpty else { return nil }
    var present = table
    var isRenamedAfterParent = false
    for (bit, column) in table.columns.enumerated() where !shape.contains(column) {
      guard let renamed = renamedReference(bit, of: table, in: shape) else { return nil }
      present.columns[bit] = renamed
      isRenamedAfterParent = true
    }
    let parents = parents(insteadOf: table)
    let isReferredTo = !parents.isEmpty && parents.allSatisfy { $0.isSame(as: name) }
    let isLinks = parents.isEmpty && isRenamedAfterParent && table.columns.count > 1
    return isReferredTo || isLinks ? present : nil
  }

  /// Returns the unknown tables to which columns lead by now that referred to a table by a foreign key.
  private func parents(insteadOf table: Registered) -> [SQLName] {
    known.flatMap { name, other -> [SQLName] in
      guard let shape = shapes[name] else { return [] }
      return zip(other.columns, other.references).flatMap { column, parent in
        parent != table.id
          ? []
          : shape.references.filter { $0.column.isSame(as: column) && !isKnown($0.table) }
            .map(\.table)
      }
    }
  }

  private func isKnown(_ name: SQLName) -> Bool { known.keys.contains { $0.isSame(as: name) } }

  /// Returns the present name of a column that referred to a renamed table: of the columns that the table has
  /// lost and gained, only one each may refer to that one.
  private func renamedReference(_ bit: Int, of table: Registered, in shape: Shape) -> SQLName? {
    guard let parent = table.references[bit],
      let renamed = known.first(where: { $0.value.id == parent }),
      !renamed.key.isSame(as: renamed.value.storedName)
    else { return nil }
    let lost = table.columns.indices.filter {
      table.references[$0] == parent && !shape.contains(table.columns[$0])
    }
    let gained = shape.references.filter { reference in
      reference.table.isSame(as: renamed.key)
        && !(table.columns + table.excluded).contains { $0.isSame(as: reference.column) }
    }
    return lost.count == 1 && gained.count == 1 ? gained[0].column : nil
  }

  private static func shape(of name: SQLName, _ database: Database) throws -> Shape {
    var shape = Shape()
    shape.columns = try Row.fetchAll(
      database, sql: "PRAGMA main.table_xinfo(\(quoted(name)))"
    ).map { $0["name"] }
    shape.references = try Row.fetchAll(
      database, sql: "PRAGMA main.foreign_key_list(\(quoted(name)))"
    ).map { ($0["from"], $0["table"]) }
    return shape
  }
}
