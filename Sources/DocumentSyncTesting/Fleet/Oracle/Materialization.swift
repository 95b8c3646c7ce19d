import SyncModel

/// The rows that a logical state shows, computed by brute force in the three steps of
/// `Documentation/Merging.md`.
struct Materialization {
  /// Why a living row is not shown.
  enum Hidden: String, Hashable {
    case parentDeleted, parentMissing, uniqueValueTaken, check, notNull
  }

  /// The visible rows with their effective values by column.
  private(set) var visible: [OracleKey: [SQLName: Value]] = [:]
  /// The living rows that are not visible.
  private(set) var hidden: [OracleKey: Hidden] = [:]
  /// The deleted rows that others hold, and that are not visible all the same.
  private(set) var heldInvisibly: Set<OracleKey> = []
  /// The rows that are shown under another identity.
  private(set) var shownElsewhere: Set<OracleKey> = []

  private let state: LogicalState
  private let schema: FleetSchema
  private let scratch: OracleScratch
  /// The rows that exist after the first step, with their values before overlays.
  private var existing: [OracleKey: [SQLName: Value]] = [:]
  /// The columns of each row that the first step overlays with another value.
  private var overlaid: [OracleKey: Set<Int>] = [:]

  init(of state: LogicalState, schema: FleetSchema, scratch: OracleScratch) throws {
    let state = state.known(in: schema)
    self.state = state
    self.schema = schema
    self.scratch = scratch
    try settleExistence()
    let (standing, values, elsewhere) = try settleClaims()
    var shown: [OracleKey: [SQLName: Value]] = [:]
    for key in standing { shown[elsewhere[key] ?? key] = values[key] }
    visible = try closure(of: shown)
    for (key, row) in state.rows where row.isLiving && visible[key] == nil && hidden[key] == nil {
      if standing.contains(key), let other = elsewhere[key], visible[other] != nil {
        shownElsewhere.insert(key)
        continue
      }
      hidden[key] =
        existing[key] == nil
        ? .parentDeleted : standing.contains(key) ? .parentMissing : .uniqueValueTaken
    }
    heldInvisibly = Set(
      existing.keys.filter { state.rows[$0]?.isLiving == false && visible[$0] == nil })
  }

  // MARK: - 1. Existence

  private mutating func settleExistence() throws {
    var all: [OracleKey: [SQLName: Value]] = [:]
    var targets: [OracleKey: [(reference: FleetReference, target: OracleKey)]] = [:]
    for (key, row) in state.rows where row.existence != .unsaid {
      guard let table = schema.table(key.table), !table.isLocal else { continue }
      let values = try values(of: key, row, table)
      all[key] = values
      targets[key] = try schema.references(of: table).compactMap { reference in
        try target(of: reference, values, in: table).map { (reference, $0) }
      }
    }
    var rescued: Set<OracleKey> = []
    while true {
      var doomed = Set(
        all.keys.filter { state.rows[$0]?.isLiving == false && !rescued.contains($0) })
      var isSettled = false
      while !isSettled {
        isSettled = true
        for key in all.keys where !doomed.contains(key) && !rescued.contains(key) {
          let follows = targets[key, default: []].contains {
            $0.reference.onDelete == .cascade && doomed.contains($0.target)
          }
          if follows {
            doomed.insert(key)
            isSettled = false
          }
        }
      }
      let remaining = all.filter { key, _ in
        !doomed.contains(key) && (state.rows[key]?.isLiving == true || rescued.contains(key))
      }
      var more: Set<OracleKey> = []
      for key in remaining.keys {
        for (reference, target) in targets[key, default: []]
        where [.restrict, .noAction, .cascade].contains(reference.onDelete)
          && remaining[target] == nil && all[target] != nil
          && state.rows[target]?.isErased == false
        {
          more.insert(target)
        }
      }
      existing = remaining
      if more.isSubset(of: rescued) { return }
      rescued.formUnion(more)
    }
  }

  /// Returns the values of a row, those of its identity included.
  private func values(
    of key: OracleKey, _ row: LogicalState.Row, _ table: FleetTable
  ) throws -> [SQLName: Value] {
    var values = row.cells.mapValues(\.shown)
    for column in table.columns where column.isCounter {
      values[column.name] = values[column.name].map(column.storedNumber)
    }
    // A row may have no cell yet of a column that was added later.
    for column in table.shared where values[table.columns[column].name] == nil {
      if table.columns[column].defaultValue == nil || table.key.contains(column) { continue }
      values[table.columns[column].name] = try defaultValue(column, table)
    }
    guard !table.hasSurrogateKey else { return values }
    for (column, value) in zip(
      table.key, try IdentityEncoding.decode(key.identity, count: table.key.count))
    where values[table.columns[column].name] == nil {
      values[table.columns[column].name] = value
    }
    return values
  }

  /// Returns the row to which a reference leads; `nil` if a column is NULL, the values are plain,
  /// or the reference does not use the key.
  private func target(
    of reference: FleetReference, _ values: [SQLName: Value], in table: FleetTable
  ) throws -> OracleKey? {
    guard let parent = schema.table(reference.parent) else { return nil }
    let referring = reference.columns.map { values[table.columns[$0].name] ?? .null }
    if referring.contains(.null) { return nil }
    guard let identity = identity(referring, reference, parent),
      !isPlain(referring, reference, parent)
    else { return nil }
    var target = OracleKey(table: parent.name, identity: identity)
    if reference.columns.contains(where: { table.key.contains($0) }) { return target }
    let named = target
    var seen: Set<OracleKey> = []
    while let row = state.rows[target], !row.isLiving, let moved = row.moved {
      // A circle of moves leads to no living row.
      guard seen.insert(target).inserted else { return named }
      target.identity = moved
    }
    return target
  }

  /// Returns whether a reference is a plain value: SQLite does not enforce the reference, and the
  /// value is no row's key, or the key of a row that no change set contains.
  private func isPlain(
    _ values: [Value], _ reference: FleetReference, _ parent: FleetTable
  ) -> Bool {
    guard !reference.isEnforced else { return false }
    if parent.integerKey.map({ reference.parentColumns == [$0] }) ?? false {
      return values[0].kind != .identity
    }
    guard let identity = identity(values, reference, parent) else { return true }
    return !isKnown(OracleKey(table: parent.name, identity: identity))
  }

  private func isKnown(_ row: OracleKey) -> Bool {
    state.rows[row].map { $0.existence != .unsaid } ?? false
  }

  /// Returns the identity that the values of a reference name; `nil` if the reference does not use
  /// the key.
  private func identity(
    _ values: [Value], _ reference: FleetReference, _ parent: FleetTable
  ) -> RowIdentity? {
    if let key = parent.integerKey, reference.parentColumns == [key] {
      if case .identity(let row) = values[0] { return row }
      // A value that cannot be a key refers to no row.
      return RowIdentity(bytes: [])
    }
    guard Set(reference.parentColumns) == Set(parent.key) else { return nil }
    let ordered = parent.key.map { column in
      reference.parentColumns.firstIndex(of: column).map { values[$0] } ?? .null
    }
    return IdentityEncoding.encode(ordered, collations: parent.keyCollations)
  }

  // MARK: - Overlays

  /// The effect of stand-ins: the row that stands in for each row, and the rows that have another
  /// identity because of it.
  private struct Leads {
    var standIns: [OracleKey: OracleKey] = [:]
    var elsewhere: [OracleKey: OracleKey] = [:]
    /// The rows that must not get another identity.
    var fixed: Set<OracleKey> = []

    /// Returns the row to which a reference of `row` to `target` leads. A stand-in never makes a
    /// row refer to itself.
    func lead(_ target: OracleKey, from row: OracleKey) -> OracleKey {
      guard let standIn = standIns[target], standIn != row else { return target }
      return standIn
    }
  }

  /// Finds the rows that have another identity because of stand-ins. It begins with rows whose
  /// identity contains only decided rows. Rows that remain form circles, or depend on one.
  private func leads(_ standIns: [OracleKey: OracleKey]) throws -> Leads {
    var leads = Leads(standIns: standIns)
    var parts: [OracleKey: [OracleKey]] = [:]
    for (key, own) in existing {
      guard let table = schema.table(key.table) else { continue }
      let targets = try schema.references(of: table).filter { reference in
        reference.columns.contains { table.key.contains($0) }
      }.compactMap { try target(of: $0, own, in: table) }
      if !targets.isEmpty { parts[key] = targets }
    }
    leads.fixed = Set(parts.keys)
    while true {
      let ready = leads.fixed.filter { key in
        !parts[key, default: []].contains { leads.fixed.contains(leads.lead($0, from: key)) }
      }
      if ready.isEmpty { return leads }
      leads.fixed.subtract(ready)
      for key in ready {
        guard let table = schema.table(key.table) else { continue }
        let values = try effectiveValues(of: key, leads).values
        let identity = IdentityEncoding.encode(
          table.key.map { values[table.columns[$0].name] ?? .null },
          collations: table.keyCollations)
        if !table.hasSurrogateKey, identity != key.identity {
          leads.elsewhere[key] = OracleKey(table: key.table, identity: identity)
        }
      }
    }
  }

  /// Returns the values that a row shows, and the columns in which they are not its own. References
  /// to rows with a stand-in lead to the stand-in.
  private func effectiveValues(
    of key: OracleKey, _ leads: Leads
  ) throws -> (values: [SQLName: Value], overlaid: Set<Int>) {
    guard let table = schema.table(key.table), let own = existing[key] else { return ([:], []) }
    var values = own
    var overlaid: Set<Int> = []
    for reference in schema.references(of: table) {
      guard var target = try target(of: reference, own, in: table),
        let parent = schema.table(reference.parent)
      else { continue }
      let isIdentifying = reference.columns.contains { table.key.contains($0) }
      let columns = reference.columns.filter { !table.key.contains($0) }
      if existing[target] == nil {
        if isIdentifying { continue }
        guard reference.onDelete == .setNull || reference.onDelete == .setDefault else { continue }
        for column in columns {
          values[table.columns[column].name] =
            if !reference.isEnforced, table.columns[column].isNotNull {
              try emptyValue(column, table, reference)
            } else if reference.onDelete == .setNull {
              Value.null
            } else {
              try defaultValue(column, table)
            }
          overlaid.insert(column)
        }
        continue
      }
      if isIdentifying, leads.fixed.contains(key) { continue }
      target = leads.lead(target, from: key)
      target = leads.elsewhere[target] ?? target
      let named = identity(
        reference.columns.map { own[table.columns[$0].name] ?? .null }, reference, parent)
      guard named != target.identity else { continue }
      for column in reference.columns {
        guard let position = reference.columns.firstIndex(of: column) else { continue }
        let value = try keyValue(reference.parentColumns[position], of: target, parent)
        values[table.columns[column].name] = table.columns[column].stored(value)
        overlaid.insert(column)
      }
    }
    return (values, overlaid)
  }

  /// Returns the value of a key column, from the row's identity.
  private func keyValue(
    _ column: Int, of target: OracleKey, _ parent: FleetTable
  ) throws -> Value {
    if parent.integerKey == column { return .identity(target.identity) }
    let values = try IdentityEncoding.decode(target.identity, count: parent.key.count)
    return parent.key.firstIndex(of: column).map { values[$0] } ?? .null
  }

  /// Returns the value that means “no row” in a column that must not be NULL.
  private func emptyValue(
    _ column: Int, _ table: FleetTable, _ reference: FleetReference
  ) throws -> Value {
    let value = try scratch.defaultValue(of: column, in: table)
    guard value == .null else {
      let known = try defaultValue(column, table)
      guard case .identity(let row) = known,
        !isKnown(OracleKey(table: reference.parent, identity: row))
      else { return known }
      return value
    }
    return switch table.columns[column].type {
    case .text: .text("")
    case .real: .real(0)
    case .integer, .blob, .any: .integer(0)
    }
  }

  /// Returns the default value of a column. If it is an integer key, it means the row that had this
  /// key before syncing began.
  private func defaultValue(_ column: Int, _ table: FleetTable) throws -> Value {
    let value = try scratch.defaultValue(of: column, in: table)
    guard let parent = schema.keyTable(of: column, in: table), let key = value.referredNumber
    else { return value }
    return .identity(state.original(of: key, in: parent))
  }

  // MARK: - 2. Unique values and conditions

  private struct Claim: Hashable {
    var table: SQLName
    /// The number of an index, or −1 for the identity of a row.
    var index: Int
    var value: RowIdentity

    var isIdentity: Bool { index < 0 }

    init(table: SQLName, index: Int, value: RowIdentity) {
      self.table = table
      self.index = index
      self.value = value
    }

    /// Creates the claim of a row that would be shown as another one.
    init(identityOf row: OracleKey) {
      self.init(table: row.table, index: -1, value: row.identity)
    }
  }

  /// Repeats three steps: finds the claims of rows by the values that they show, the rows that
  /// stand, and the stand-ins. The loop ends because it only adds claims. Returns the rows that
  /// stand, the shown values, and the other identities of rows.
  private mutating func settleClaims() throws -> (
    standing: Set<OracleKey>, values: [OracleKey: [SQLName: Value]],
    elsewhere: [OracleKey: OracleKey]
  ) {
    var values: [OracleKey: [SQLName: Value]] = [:]
    var leads = Leads()
    for key in existing.keys {
      (values[key], overlaid[key]) = try effectiveValues(of: key, leads)
    }
    /// The rows that a condition of their table refuses.
    var refused: [OracleKey: Hidden] = [:]
    var claims: [Claim: Set<OracleKey>] = [:]
    var standing: Set<OracleKey> = []
    var isFirst = true
    while true {
      let before = claims.values.reduce(refused.count) { $0 + $1.count }
      for (key, values) in values {
        guard let table = schema.table(key.table), refused[key] == nil else { continue }
        switch try scratch.verdict(table, values) {
        case .check: refused[key] = .check
        case .notNull: refused[key] = .notNull
        case .claims(let found):
          for (index, value) in found.enumerated() {
            guard let value else { continue }
            claims[Claim(table: key.table, index: index, value: value), default: []].insert(key)
          }
          if let other = leads.elsewhere[key] {
            claims[Claim(identityOf: other), default: []].insert(key)
          }
        }
      }
      if !isFirst, claims.values.reduce(refused.count, { $0 + $1.count }) == before { break }
      isFirst = false
      let losses = losses(claims, refused: Set(refused.keys))
      standing = Set(values.keys.filter { refused[$0] == nil && losses[$0] == nil })
      leads = try self.leads(standIns(losses.filter { refused[$0.key] == nil }, standing))
      for key in existing.keys { values[key] = try effectiveValues(of: key, leads).values }
    }
    for (key, reason) in refused where state.rows[key]?.isLiving == true { hidden[key] = reason }
    return (standing, values, leads.elsewhere)
  }

  /// Returns, for each row that loses claims, the rows that have the values, with their ranks.
  private func losses(
    _ claims: [Claim: Set<OracleKey>], refused: Set<OracleKey>
  ) -> [OracleKey: [(OracleKey, Rank)]] {
    var losses: [OracleKey: [(OracleKey, Rank)]] = [:]
    for (claim, others) in claims {
      guard let table = schema.table(claim.table) else { continue }
      var claimants = others
      let owner = OracleKey(table: claim.table, identity: claim.value)
      if claim.isIdentity, existing[owner] != nil, !refused.contains(owner) {
        claimants.insert(owner)
      }
      if claimants.count < 2 { continue }
      let ranks = claimants.map { key in
        guard claim.isIdentity else { return (key, rank(key, table.uniques[claim.index], table)) }
        // The row whose own identity it is comes before all others.
        let stamp = state.rows[key]?.existenceStamp ?? .zero
        return (key, Rank(isPlain: key == owner, stamp: stamp, identity: key.identity))
      }
      guard let top = ranks.max(by: { $0.1 < $1.1 }) else { continue }
      for key in claimants where key != top.0 { losses[key, default: []].append(top) }
    }
    return losses
  }

  /// Returns the stand-in of each row that lost a value.
  private func standIns(
    _ losses: [OracleKey: [(OracleKey, Rank)]], _ standing: Set<OracleKey>
  ) -> [OracleKey: OracleKey] {
    let next = losses.compactMapValues { holders in
      holders.max {
        let (left, right) = (standing.contains($0.0), standing.contains($1.0))
        return left == right ? $0.1 < $1.1 : right
      }?.0
    }
    var result: [OracleKey: OracleKey] = [:]
    for key in next.keys where schema.table(key.table)?.hasStandIns == true {
      var seen: Set<OracleKey> = []
      var found = key
      while let holder = next[found], seen.insert(found).inserted { found = holder }
      if standing.contains(found) { result[key] = found }
    }
    return result
  }

  /// The order of claimants, the most important criterion first.
  private struct Rank: Comparable {
    var isPlain: Bool
    var stamp: Stamp
    var identity: RowIdentity

    static func < (left: Rank, right: Rank) -> Bool {
      if left.isPlain != right.isPlain { return right.isPlain }
      if left.stamp != right.stamp { return left.stamp < right.stamp }
      return left.identity < right.identity
    }
  }

  private func rank(_ key: OracleKey, _ unique: FleetUnique, _ table: FleetTable) -> Rank {
    let columns =
      table.isPlain(unique)
      ? unique.columns : table.shared + table.key.filter { !table.shared.contains($0) }
    let row = state.rows[key] ?? LogicalState.Row()
    var newest = Stamp.zero
    for column in columns {
      if table.integerKey == column { continue }
      let stamp =
        table.isPureIdentity(column, in: schema)
        ? row.existenceStamp : row.cells[table.columns[column].name]?.stamp
      newest = max(newest, stamp ?? .zero)
    }
    let isOverlaid = !(overlaid[key] ?? []).isDisjoint(with: columns)
    return Rank(isPlain: row.isLiving && !isOverlaid, stamp: newest, identity: key.identity)
  }

  // MARK: - 3. References

  private func closure(
    of shown: [OracleKey: [SQLName: Value]]
  ) throws -> [OracleKey: [SQLName: Value]] {
    var visible = shown
    var isSettled = false
    while !isSettled {
      isSettled = true
      for (key, row) in visible where try !hasAllParents(key, row, among: visible) {
        visible[key] = nil
        isSettled = false
      }
    }
    return visible
  }

  private func hasAllParents(
    _ key: OracleKey, _ values: [SQLName: Value], among visible: [OracleKey: [SQLName: Value]]
  ) throws -> Bool {
    guard let table = schema.table(key.table) else { return true }
    for reference in schema.references(of: table) {
      guard let parent = schema.table(reference.parent), !parent.isLocal,
        schema.isRequired(reference, of: table)
      else { continue }
      let referring = reference.columns.map { values[table.columns[$0].name] ?? .null }
      if referring.contains(.null) { continue }
      if let identity = identity(referring, reference, parent) {
        if isPlain(referring, reference, parent) { continue }
        if visible[OracleKey(table: parent.name, identity: identity)] == nil { return false }
        continue
      }
      let collations = reference.parentColumns.map { parent.columns[$0].collation }
      let wanted = IdentityEncoding.encode(referring, collations: collations)
      let isFound = visible.contains { candidate, values in
        candidate.table == parent.name
          && IdentityEncoding.encode(
            reference.parentColumns.map { values[parent.columns[$0].name] ?? .null },
            collations: collations) == wanted
      }
      if !isFound { return false }
    }
    return true
  }
}
