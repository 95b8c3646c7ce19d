import SyncModel

/// A database in which the oracle asks SQLite about single rows: whether a condition of the table
/// refuses the row, and which values it claims in the unique indexes.
final class OracleScratch {
  enum Verdict: Hashable {
    /// A CHECK or a STRICT type refuses the row.
    case check
    case notNull
    /// The claimed value for each index; `nil` for an index that does not contain the row.
    case claims([RowIdentity?])
  }

  private struct Question: Hashable {
    var table: SQLName
    var values: [SQLName: Value]
  }

  private let schema: FleetSchema
  private let database: FleetSQLite
  private var answers: [Question: Verdict] = [:]
  private var keys: [RowIdentity: Int64] = [:]

  init(schema: FleetSchema) throws {
    self.schema = schema
    database = try FleetSQLite(":memory:")
    if schema.isWide { try database.run("PRAGMA encoding = 'UTF-16le'") }
    for table in schema.synchronized { try database.run(table.scratchSQL) }
  }

  /// Returns SQLite's verdict on a row with these values.
  func verdict(_ table: FleetTable, _ values: [SQLName: Value]) throws -> Verdict {
    let question = Question(table: table.name, values: values)
    if let answer = answers[question] { return answer }
    let answer = try ask(table, values)
    answers[question] = answer
    return answer
  }

  func defaultValue(of column: Int, in table: FleetTable) throws -> Value {
    let literal = table.columns[column].defaultValue ?? "NULL"
    let isText = table.columns[column].type == .text
    let query = "SELECT \(isText ? "CAST(\(literal) AS TEXT)" : literal)"
    return table.columns[column].formless(try database.rows(query)[0][0])
  }

  private func ask(_ table: FleetTable, _ values: [SQLName: Value]) throws -> Verdict {
    let names = table.shared.map { table.columns[$0].name }
    let marks = names.map { _ in "?" }.joined(separator: ", ")
    let insertion =
      names.isEmpty
      ? "INSERT INTO \(table.name.sql) DEFAULT VALUES"
      : "INSERT INTO \(table.name.sql) (\(names.map(\.sql).joined(separator: ", "))) VALUES (\(marks))"
    do {
      _ = try database.rows(insertion, names.map { local(values[$0] ?? .null) })
    } catch let refusal as FleetSQLite.Refusal {
      switch refusal.extendedCode {
      case OracleScratch.notNullCode: return .notNull
      case OracleScratch.checkCode, OracleScratch.typeCode: return .check
      default: throw refusal
      }
    }
    defer { clear(table) }
    return .claims(try table.uniques.map { try claim($0, table, values) })
  }

  private func clear(_ table: FleetTable) {
    do {
      try database.run("DELETE FROM \(table.name.sql)")
    } catch {
      preconditionFailure("the oracle's own table cannot be emptied: \(error)")
    }
  }

  private func claim(
    _ unique: FleetUnique, _ table: FleetTable, _ values: [SQLName: Value]
  ) throws -> RowIdentity? {
    let terms = unique.terms.map(table.sql).joined(separator: ", ")
    let rows = try database.rows(
      "SELECT \(terms) FROM \(table.name.sql)" + (unique.condition.map { " WHERE \($0)" } ?? ""))
    guard var found = rows.first else { return nil }
    for (index, term) in unique.terms.enumerated() {
      // Compare references by the rows to which they lead.
      if case .column(let column, _) = term, case .identity = values[table.columns[column].name] {
        found[index] = values[table.columns[column].name] ?? .null
      }
    }
    if found.contains(.null) { return nil }
    return IdentityEncoding.encode(found, collations: unique.terms.map(unique.collation))
  }

  /// Returns a key for the row to which a value refers. Any key serves if it is always the same.
  private func local(_ value: Value) -> Value {
    guard case .identity(let row) = value else { return value }
    if let key = keys[row] { return .integer(key) }
    keys[row] = Int64(1_000 + keys.count)
    return .integer(Int64(1_000 + keys.count - 1))
  }

  // Extended codes of SQLITE_CONSTRAINT, which Swift does not import.
  private static let checkCode: Int32 = 19 | 1 << 8
  private static let notNullCode: Int32 = 19 | 5 << 8
  private static let typeCode: Int32 = 19 | 12 << 8
}
