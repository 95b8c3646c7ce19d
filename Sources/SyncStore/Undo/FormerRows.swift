import SyncModel

/// The rows of one table in another store of the document, which lacks some of its change sets: in terms of
/// this store.
///
/// The other store may have an earlier schema. What that lacks is among its foreign rows.
final class FormerRows {
  /// A row of the other store.
  struct Row {
    /// Whether it exists there, shown or not.
    var exists = false
    /// Its logical values, by column of this store; `nil` where they are not known.
    var values: [Value?]
  }

  /// How many rows are in memory at once.
  private static let greatestCount = 1_000

  private let table: TableSchema
  private let session: StoreSession
  private let former: StoreSession
  /// `nil` if the other store does not have the table.
  private let there: TableSchema?
  /// For each column here, its position there.
  private var positions: [Int?]
  /// The values that rows have in columns of which the other store knows nothing.
  private let absent: [Value?]
  /// `nil` if keys have the same form in both.
  private let identities: OtherIdentities?
  private let foreign: ForeignRows.Table?
  private let rows: WorkingSet

  /// `nil` if the other store identifies the rows of the table in another way.
  init?(of access: TableAccess, in former: StoreSession) throws {
    let table = access.table
    self.table = table
    session = access.session
    self.former = former
    let wireName = table.wireName
    let there = former.schema.table(wireName: wireName)
    if let there, there.identityDescription != table.identityDescription { return nil }
    // Without the table, the other store does not know which spellings of a key are one key.
    let hasOneSpelling = table.identityPositions.allSatisfy { table.columns[$0].hasOneSpelling }
    guard there != nil || hasOneSpelling else { return nil }
    self.there = there
    positions = table.columns.map { column in
      there?.columns.firstIndex { $0.wireName == column.wireName }
    }
    absent = try AbsentValues(session.database).values(of: table)
    identities = try there.flatMap { try access.identities(in: former.access($0.id)) }
    let kind = table.identity.kind
    foreign = try former.foreign.all().first { $0.wireName == wireName && $0.kind == kind }
    rows = WorkingSet(session: former)
  }

  /// Returns the row with an identity of this store.
  func row(_ identity: RowIdentity) throws -> Row {
    let identity = identities?.there[identity] ?? identity
    var row = Row(values: absent)
    let rest = try foreign.flatMap { try former.foreign.row(identity, of: $0.id) }
    if let there {
      if rows.count >= Self.greatestCount { rows.removeAll() }
      let known = try rows.row(RowKey(table: there.id, identity: identity))
      // A deleted row may be shown since others refer to it.
      row.exists = known.isLiving && !known.isUnseen || known.shown != nil && !known.wasBorrowed
      for (position, place) in positions.enumerated() {
        guard let place else { continue }
        row.values[position] = try value(
          known.values[place], of: there.columns[place], in: table.columns[position])
      }
    } else {
      row.exists = rest?.existence == .inserted
    }
    for cell in rest?.cells ?? [] {
      guard let name = foreign?.columns[cell.column],
        let position = table.columns.firstIndex(where: { $0.wireName == name }),
        positions[position] == nil
      else { continue }
      // Of a counter, only one of the additions is stored.
      let isCounter = table.columns[position].domain == .counter
      row.values[position] = isCounter ? nil : try value(cell.value, in: table.columns[position])
    }
    return row
  }

  /// Returns a value of the other store as one of this store; `nil` if it means something else.
  private func value(
    _ value: Value?, of there: ColumnSchema, in column: ColumnSchema
  ) throws -> Value? {
    switch (column.domain, there.domain) {
    case (.plain, .plain), (.counter, .counter), (.counter, .plain):
      break
    case (.plain, .counter):
      return value.flatMap(CounterValue.init)?.shown
    case (.key(let here), .key(let other)):
      guard session.schema[here].wireName == former.schema[other].wireName else { return nil }
    case (.key, _), (_, .key):
      guard value == .null else { return nil }
    }
    return try value.flatMap { try self.value($0, in: column) }
  }

  /// Returns a logical value as the column has it by now; `nil` if it means something else.
  private func value(_ value: Value, in column: ColumnSchema) throws -> Value? {
    guard case .identity(let row) = value else { return value }
    guard let parent = column.referredTable else { return nil }
    return .identity(try session.access(parent).presentIdentity(row))
  }
}

extension ColumnSchema {
  /// Whether no two values of the column are one key, in tables that know the column and in those that do not.
  fileprivate var hasOneSpelling: Bool {
    domain == .plain && keyCollation == .binary && affinity != .numeric && affinity != .real
  }
}
