import GRDB
import SyncModel

/// A reference to a synchronized table, as the merge of a database follows it: from the former row to
/// that row in the document.
final class RowReference {
  /// Positions of the referring columns.
  let columns: [Int]
  let parent: TableSchema
  let parentColumns: [SQLName]
  /// Whether SQLite enforces it.
  let isEnforced: Bool
  /// Whether its columns become NULL if the row to which it leads is gone, and no other reference has them.
  private(set) var canBeCleared = false
  /// Those of its columns that may be NULL, and that no other reference has.
  private(set) var clearable: Set<Int> = []
  /// The SQL that reads the referred columns of the row with a key in the document.
  let selection: String
  /// Whether the referred columns tell rows apart without being the key.
  let isUnique: Bool
  /// For each column of the parent's key, its position among the referred columns; `nil` if the
  /// reference leads to other columns.
  private let keyPositions: [Int]?
  private let affinities: [ColumnSchema.Affinity]
  private let collations: [KeyCollation]
  /// Whether the referring column is part of a key, where only the plain form of a number refers.
  private let isKey: Bool

  init(
    _ columns: [Int], _ parent: TableSchema, _ parentColumns: [SQLName], isEnforced: Bool = true,
    isKey: Bool = false
  ) {
    self.columns = columns
    self.parent = parent
    self.parentColumns = parentColumns
    self.isEnforced = isEnforced
    self.isKey = isKey
    let key = MergedKeys.keyColumns(parent)
    selection =
      "SELECT \(parentColumns.map(quoted).joined(separator: ", ")) FROM \(parent.quotedName) "
      + "WHERE \(TableAccess.match(key))"
    let positions = key.compactMap { name in parentColumns.firstIndex { $0.isSame(as: name) } }
    let isToKey = positions.count == key.count && key.count == parentColumns.count
    keyPositions = isToKey ? positions : nil
    isUnique = !isToKey && parent.isUnique(parentColumns)
    affinities = parentColumns.map(parent.affinity(of:))
    collations = parentColumns.map { name in
      parent.columns.first { $0.name.isSame(as: name) }?.keyCollation ?? .binary
    }
  }

  /// Returns the references of a synchronized table.
  static func all(of table: TableSchema, _ schema: StoreSchema) -> [RowReference] {
    let declared = table.foreignKeys.map { key in
      RowReference(
        key.columns, schema[key.parent], key.parentColumns, isEnforced: key.isEnforced,
        isKey: key.columns.count == 1 && table.columns[key.columns[0]].isIdentity)
    }
    let domains = table.columns.enumerated().map {
      (column: $0, domain: $1.domain, isKey: $1.isIdentity)
    }
    let all = sorted(declared, domains, schema)
    for (key, reference) in zip(table.foreignKeys, declared) {
      reference.clearable = Set(key.columns).filter { column in
        !table.columns[column].isNotNull && !table.columns[column].isIdentity
          && !all.contains { $0 !== reference && $0.columns.contains(column) }
      }
      reference.canBeCleared =
        key.onDelete == .setNull && reference.clearable == Set(key.columns)
    }
    return all
  }

  /// Returns references with those that follow from them: a column that stands for keys of rows as a
  /// part of a reference, or by way of another column, refers to these rows also alone.
  static func withImplied(_ references: [RowReference], _ schema: StoreSchema) -> [RowReference] {
    let domains = references.flatMap { reference in
      zip(reference.columns, reference.parentColumns).map { column, name in
        (column: column, domain: reference.parent.referred(name).domain, isKey: false)
      }
    }
    return sorted(references, domains, schema)
  }

  /// Those with more columns come later: they are laid over the others.
  private static func sorted(
    _ declared: [RowReference],
    _ domains: [(column: Int, domain: ColumnSchema.Domain, isKey: Bool)], _ schema: StoreSchema
  ) -> [RowReference] {
    var single: [RowReference] = []
    for (column, domain, isKey) in domains {
      guard case .key(let id) = domain, let key = schema[id].localKey else { continue }
      let isKnown = (declared + single).contains {
        $0.columns == [column] && $0.parent.id == id && $0.parentColumns[0].isSame(as: key)
      }
      if isKnown { continue }
      single.append(RowReference([column], schema[id], [key], isEnforced: false, isKey: isKey))
    }
    return (single + declared.filter { $0.columns.count == 1 })
      + declared.filter { $0.columns.count > 1 }.sorted { $0.columns.count < $1.columns.count }
  }

  /// Returns the key of the row to which values lead, in the order of ``MergedKeys``; `nil` if the
  /// reference is not to the key, or the values can be no key.
  func key(_ referring: [Value]) -> [Value]? {
    guard let keyPositions else { return nil }
    guard parent.localKey == nil else {
      return (isKey ? Value.key(referring[0]) : Value.referredKey(referring[0]))
        .map { [.integer($0)] }
    }
    return keyPositions.map { referring[$0].applying(affinities[$0]) }
  }

  /// Whether the reference leads to the key of its parent.
  var isToKey: Bool { keyPositions != nil }

  /// Returns the values of a key in the order of the reference's columns.
  func referring(to key: [Value]) -> [Value] {
    var values = key
    for (index, position) in (keyPositions ?? []).enumerated() { values[position] = key[index] }
    return values
  }

  /// Whether two values of a referring column lead to the same row.
  func areSame(_ value: Value, _ other: Value, at index: Int) -> Bool {
    value == other || canonical(value, at: index) == canonical(other, at: index)
  }

  private func canonical(_ value: Value, at index: Int) -> RowIdentity {
    IdentityEncoding.encode(
      [value.applying(affinities[index])], collations: [collations[index]])
  }
}
