import GRDB
import SyncModel

/// Integer keys that are references themselves, as in a one-to-one relation.
extension SchemaReader {
  /// The tables to which integer keys refer.
  struct KeyReferences {
    /// For each table, by name in lower case, whose integer key is a reference: the name of the
    /// table to whose rows it refers.
    fileprivate(set) var parents: [SQLName: SQLName] = [:]

    /// Returns the table to which a table's integer key refers, or `nil` if it refers to none.
    func parent(of table: SQLName) -> SQLName? { parents[table.folded] }
  }

  /// A column, by names in lower case.
  private struct ColumnName: Hashable {
    var table: SQLName
    var column: SQLName
  }

  /// The data of a table that concern its integer key.
  private struct Node {
    var wireName: SQLName
    var alias: SQLName
    var identity: StoreConfiguration.Identity?
  }

  /// Finds the tables whose integer key is a reference.
  ///
  /// A key that leads back to itself, through any number of tables, identifies no row. In such a
  /// circle the table whose name comes first keeps identities of its own; the keys of the other
  /// tables lead to it.
  func keyReferences(
    among names: [SQLName], registered: [SQLName: Registered]
  ) throws -> KeyReferences {
    var nodes: [SQLName: Node] = [:]
    var keys: [SQLName: [SQLName]] = [:]
    var required: Set<ColumnName> = []
    for name in names {
      let information = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(quoted(name)))")
      let list = try Row.fetchOne(database, sql: "PRAGMA main.table_list(\(quoted(name)))")
      let key =
        information.filter { ($0["pk"] as Int) > 0 }
        .sorted { ($0["pk"] as Int) < ($1["pk"] as Int) }.map { $0["name"] as SQLName }
      keys[name.folded] = key
      for row in information where (row["notnull"] as Int) != 0 || (row["pk"] as Int) > 0 {
        required.insert(
          ColumnName(table: name.folded, column: (row["name"] as SQLName).folded))
      }
      let alias = try rowidAlias(
        of: name, primaryKey: key, information: information,
        isWithoutRowid: (list?["wr"] ?? 0) != 0)
      guard let alias else { continue }
      let wireName = registered[name]?.wireName ?? name
      nodes[name.folded] = Node(
        wireName: wireName, alias: alias.folded,
        identity: lookup(configuration.identities, wireName))
    }
    let references = try referredColumns(
      of: names, keys: keys, required: required, registered: registered)
    return chosen(nodes, references)
  }

  /// Returns the columns to which each column refers. Leaves out references in which another column
  /// can be NULL.
  private func referredColumns(
    of names: [SQLName], keys: [SQLName: [SQLName]], required: Set<ColumnName>,
    registered: [SQLName: Registered]
  ) throws -> [ColumnName: [ColumnName]] {
    var references: [ColumnName: [ColumnName]] = [:]
    for name in names {
      let table = name.folded
      let rows = try Row.fetchAll(
        database, sql: "PRAGMA main.foreign_key_list(\(quoted(name)))")
      for (_, terms) in Dictionary(grouping: rows, by: { $0["id"] as Int }) {
        let parent = (terms[0]["table"] as SQLName).folded
        guard let parentKey = keys[parent] else { continue }
        let columns = terms.map {
          ColumnName(table: table, column: ($0["from"] as SQLName).folded)
        }
        for (term, column) in zip(terms, columns)
        where columns.allSatisfy({ $0 == column || required.contains($0) }) {
          let position: Int = term["seq"]
          let implied = position < parentKey.count ? parentKey[position] : nil
          guard let target = term["to"] as SQLName? ?? implied else { continue }
          references[column, default: []].append(
            ColumnName(table: parent, column: target.folded))
        }
      }
      let wireName = registered[name]?.wireName ?? name
      for (column, parent) in lookup(configuration.references, wireName) ?? [:] {
        let present = names.first {
          (registered[$0]?.wireName ?? $0).folded == parent.folded
        }
        guard let present, let key = keys[present.folded], key.count == 1 else { continue }
        references[ColumnName(table: table, column: column.folded), default: []].append(
          ColumnName(table: present.folded, column: key[0].folded))
      }
    }
    return references
  }

  private func chosen(
    _ nodes: [SQLName: Node], _ references: [ColumnName: [ColumnName]]
  ) -> KeyReferences {
    // In an order that is the same on all devices.
    let order = nodes.sorted { $0.value.wireName < $1.value.wireName }
    /// Keys at which a chain of references ends: those of tables whose rows have identities of
    /// their own.
    var ends: Set<ColumnName> = []
    func leadsBack(_ start: ColumnName) -> Bool {
      var next = references[start] ?? []
      var seen: Set<ColumnName> = []
      while let column = next.popLast() {
        if column == start { return true }
        guard !ends.contains(column), seen.insert(column).inserted else { continue }
        next += references[column] ?? []
      }
      return false
    }
    var result = KeyReferences()
    for (table, node) in order {
      let alias = ColumnName(table: table, column: node.alias)
      if let identity = node.identity, identity != .primaryKey { ends.insert(alias) }
    }
    for (table, node) in order {
      let alias = ColumnName(table: table, column: node.alias)
      guard let parent = references[alias]?.first else { continue }
      if leadsBack(alias) {
        ends.insert(alias)
      } else {
        result.parents[table] = parent.table
      }
    }
    return result
  }
}
