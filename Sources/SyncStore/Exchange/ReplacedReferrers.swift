import GRDB
import SyncModel

/// The rows that stay on this device (``LocalReference``) and refer to rows that a whole store
/// replaces.
struct ReplacedReferrers {
  private struct Found {
    var referrer: LocalReferrer
    /// The referring row, if its table is synchronized: it may have another key afterwards.
    var child: (table: SQLName, row: RowIdentity)?
    /// The table of the row to which it refers, as it was.
    var table: TableSchema
  }

  private var found: [Found] = []

  /// Adds the rows that refer to rows of a table. Must be called before these are removed.
  ///
  /// - Parameters:
  ///   - session: The session with the former schema.
  ///   - condition: The SQL condition on the rows `t` of the table.
  mutating func add(
    referringTo table: TableSchema, where condition: String, _ session: StoreSession
  ) throws {
    let access = try session.access(table.id)
    for reference in try session.localReferences()[table.name.folded] ?? [] {
      let child = try session.schema.table(named: reference.child).map { try session.access($0.id) }
      let names =
        (reference.childKey + reference.columns).map { "c.\(quoted($0))" }
        + (reference.parentColumns + table.keyColumns).map { "t.\(quoted($0))" }
      let matching = zip(reference.parentColumns, reference.columns).map {
        "t.\(quoted($0)) = c.\(quoted($1))"
      }
      let keys = table.keyColumns.map { "t.\(quoted($0)) IS NOT NULL" }
      let reading = try SQLStatement(
        "SELECT \(names.joined(separator: ", ")) FROM main.\(quoted(reference.child)) AS c "
          + "CROSS JOIN main.\(table.quotedName) AS t ON \(matching.joined(separator: " AND ")) "
          + "WHERE (\(condition)) AND \(keys.joined(separator: " AND "))", on: session.database)
      while try reading.step() {
        var rest = names.indices.map { reading.value(at: $0) }[...]
        func take(_ count: Int) -> [Value] {
          defer { rest = rest.dropFirst(count) }
          return Array(rest.prefix(count))
        }
        let key = take(reference.childKey.count)
        let values = take(reference.columns.count)
        let referred = take(reference.parentColumns.count)
        if key.contains(.null) { continue }
        found.append(
          Found(
            referrer: LocalReferrer(
              row: RowKey(table: table.id, identity: try access.identity(ofKey: Array(rest))),
              key: key, reference: reference, values: values, referred: referred, target: .deleted),
            child: try child.map { ($0.table.wireName, try $0.identity(ofKey: key)) }, table: table)
        )
      }
    }
  }

  /// Lets the rows refer to the same rows as before, wherever these are now. Does what the foreign
  /// keys prescribe where they are deleted or live on under other keys.
  ///
  /// - Parameters:
  ///   - session: The session with the new schema.
  ///   - isMerging: Whether the former rows are merged afterwards. Then rows of excluded tables
  ///     stay as they are: the merge brings rows back, and translates the values that referred to
  ///     them (``LocalRows``).
  func follow(_ session: StoreSession, isMerging: Bool) throws {
    try follow(isMerging ? found.filter { $0.child != nil } : found, session)
  }

  /// Does what the foreign keys of excluded tables prescribe for rows that a merge has not brought
  /// back, since the document has deleted them. Must be called before the values are translated.
  ///
  /// - Parameter session: The session with the new schema.
  func follow(deletionOf rows: Set<RowKey>, _ session: StoreSession) throws {
    let referring = found.filter { found in
      guard found.child == nil, let table = session.schema.table(wireName: found.table.wireName)
      else { return false }
      return rows.contains(RowKey(table: table.id, identity: found.referrer.row.identity))
    }
    try follow(referring, session)
  }

  private func follow(_ found: [Found], _ session: StoreSession) throws {
    guard !found.isEmpty else { return }
    let references = try session.localReferences().values.flatMap(\.self)
    let referrers = LocalReferrers(session)
    for found in found {
      var referrer = found.referrer
      // Rows that are identified in another way are other rows.
      guard let table = session.schema.table(wireName: found.table.wireName),
        table.identityDescription == found.table.identityDescription,
        table.identity != .surrogate || table.origin == found.table.origin,
        let reference = references.first(where: {
          $0.child.isSame(as: referrer.reference.child) && $0.columns == referrer.reference.columns
            && $0.parent.isSame(as: table.name)
        }), let key = try key(of: found, session),
        let target = try referrers.target(
          of: RowKey(table: table.id, identity: referrer.row.identity))
      else { continue }
      (referrer.reference, referrer.key, referrer.target) = (reference, key, target)
      referrers.add(referrer)
    }
    try referrers.follow()
  }

  /// Returns the key that a referring row has now; `nil` if it is gone.
  private func key(of found: Found, _ session: StoreSession) throws -> [Value]? {
    guard let (name, row) = found.child else { return found.referrer.key }
    guard let table = session.schema.table(wireName: name) else { return nil }
    return try session.access(table.id).namingKey(of: row)
  }
}
