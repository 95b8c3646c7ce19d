import GRDB
import SyncModel

/// The identities of rows in another store of the document, in which keys have another form.
struct OtherIdentities {
  private(set) var there: [RowIdentity: RowIdentity] = [:]
  private(set) var here: [RowIdentity: RowIdentity] = [:]

  mutating func add(_ here: RowIdentity, _ there: RowIdentity) {
    self.there[here] = there
    self.here[there] = here
  }
}

/// Identities from the time when the columns of a key had another affinity or collation.
extension TableAccess {
  /// Returns the identity for logical values of the identity's columns if these had the given forms.
  /// `nil` if the forms do not fit the table.
  func identity(of values: [Value], in forms: [KeyForm]) -> RowIdentity? {
    let positions = table.identityPositions
    guard table.identity != .surrogate, forms.count == positions.count,
      values.count == positions.count
    else { return nil }
    let columns = zip(positions, forms).map { $1.applied(to: table.columns[$0]) }
    return IdentityEncoding.encode(
      zip(values, columns).map { value, column in
        column.isKeyed ? value : value.kept(in: column)
      }, collations: columns.map(\.keyCollation))
  }

  /// Returns the form that an identity from another time, or from another store, has in this table.
  /// The spelling of its values may be lost.
  func presentIdentity(_ identity: RowIdentity) throws -> RowIdentity {
    let positions = table.identityPositions
    guard table.identity != .surrogate,
      let values = IdentityEncoding.values(of: identity, count: positions.count)
    else { return identity }
    return self.identity(of: try presentValues(values))
  }

  /// Returns logical values of a key in the form in which this table has them.
  func presentValues(_ key: [Value]) throws -> [Value] {
    try zip(key, table.identityPositions).map { value, position in
      let column = table.columns[position]
      guard case .identity(let row) = value, let parent = column.referredTable else {
        return value.kept(in: column)
      }
      return .identity(try session.access(parent).presentIdentity(row))
    }
  }

  /// Returns the states of rows, `nil` for a row without one.
  func states(of identities: [RowIdentity]) throws -> [RowState?] {
    let fingerprints = identities.map(fingerprint)
    return try stamps.states(
      of: fingerprints,
      inOrder: identities.indices.sorted { fingerprints[$0] < fingerprints[$1] })
  }

  /// Returns the identities of the rows of another store of the document, here and there; `nil` if
  /// keys have the same form in both.
  func identities(in other: TableAccess) throws -> OtherIdentities? {
    var seen: Set<Int> = []
    guard try !hasSameKeyForms(as: other, &seen) else { return nil }
    var found = OtherIdentities()
    for identity in try other.session.keptRows.identities(in: other.table.id) {
      found.add(try presentIdentity(identity), identity)
    }
    let reading = try SQLStatement(
      "SELECT \(other.table.keyColumns.map(quoted).joined(separator: ", ")) "
        + "FROM \(other.table.quotedName)", on: other.session.database)
    while try reading.step() {
      let key = other.table.keyColumns.indices.map { reading.value(at: $0) }
      if key.contains(.null) { continue }
      // The identity there may have lost the spelling.
      let values = try other.logicalKey(key)
      found.add(try identity(of: presentValues(values)), other.identity(of: values))
    }
    return found
  }

  /// - Parameter seen: The tables that were compared.
  private func hasSameKeyForms(as other: TableAccess, _ seen: inout Set<Int>) throws -> Bool {
    guard seen.insert(table.id).inserted else { return true }
    guard KeyForm.ofKey(of: table) == KeyForm.ofKey(of: other.table) else { return false }
    let there = other.table.identityPositions
    for (position, there) in zip(table.identityPositions, there) {
      guard let parent = table.columns[position].referredTable,
        let parentThere = other.table.columns[there].referredTable
      else { continue }
      let (access, accessThere) = try (
        session.access(parent), other.session.access(parentThere)
      )
      if try !access.hasSameKeyForms(as: accessThere, &seen) { return false }
    }
    return true
  }

  /// The forms that the columns of the key had at some time, the latest first.
  private func formerKeyForms() throws -> [[KeyForm]] {
    if let knownFormerKeyForms { return knownFormerKeyForms }
    let forms = try KeyForms.read(session.database)?.formerForms(of: table.id) ?? []
    knownFormerKeyForms = forms
    return forms
  }

  /// Whether identities had another form at some time: that of the own columns, or of a key to which
  /// one refers.
  func hadOtherKeyForms() throws -> Bool {
    var seen: Set<Int> = []
    return try hadOtherKeyForms(&seen)
  }

  /// - Parameter seen: The tables that were looked at.
  private func hadOtherKeyForms(_ seen: inout Set<Int>) throws -> Bool {
    guard table.identity != .surrogate, seen.insert(table.id).inserted else { return false }
    if try !formerKeyForms().isEmpty { return true }
    for position in table.identityPositions {
      guard let parent = table.columns[position].referredTable else { continue }
      if try session.access(parent).hadOtherKeyForms(&seen) { return true }
    }
    return false
  }

  /// The most forms of one key that are looked for: several columns can have had several forms each.
  private static let greatestCount = 64

  /// Returns the identities that a row may have had in former forms.
  private func formerIdentities(of identity: RowIdentity) throws -> [RowIdentity] {
    let positions = table.identityPositions
    guard table.identity != .surrogate,
      let values = IdentityEncoding.values(of: identity, count: positions.count)
    else { return [] }
    var keys: [[Value]] = [[]]
    for (value, position) in zip(values, positions) {
      var forms = [value]
      if case .identity(let row) = value, let parent = table.columns[position].referredTable {
        forms += try session.access(parent).formerIdentities(of: row).map(Value.identity)
      }
      keys = Array(keys.flatMap { key in forms.map { key + [$0] } }.prefix(Self.greatestCount))
    }
    let forms = try formerKeyForms()
    let identities = keys.flatMap { key in
      [self.identity(of: key)] + forms.compactMap { self.identity(of: key, in: $0) }
    }
    return identities.filter { $0 != identity }
  }

  /// Lets the states of rows without one follow their keys: see ``adoptFormerState(of:)``.
  func adoptFormerStates(of identities: [RowIdentity], _ states: inout [RowState?]) throws {
    guard try hadOtherKeyForms() else { return }
    let missing = states.indices.filter { states[$0] == nil }
    try stamps.readAhead(
      missing.flatMap { try formerIdentities(of: identities[$0]).map(fingerprint) })
    for row in missing { states[row] = try adoptFormerState(of: identities[row]) }
  }

  /// Moves the state of a row from an identity that it had in a former form. ``KeyFormChange`` does not
  /// know the keys of rows that are erased, or were deleted while there were no triggers; otherwise
  /// their deletions would be forgotten.
  ///
  /// Returns the state; `nil` if there is none.
  private func adoptFormerState(of identity: RowIdentity) throws -> RowState? {
    for former in try formerIdentities(of: identity) {
      // Another row can have an identity of that form.
      guard try presentIdentity(former) == identity,
        let state = try stamps.state(of: fingerprint(former)), !state.isKept
      else { continue }
      let changes = [(fingerprint(former), nil), (fingerprint(identity), state)]
      try stamps.store(changes.sorted { $0.0 < $1.0 })
      return state
    }
    return nil
  }
}
