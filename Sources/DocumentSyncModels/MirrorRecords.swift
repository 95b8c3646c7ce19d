import Foundation
import GRDB

/// The records in the tables of a mirror, in one transaction.
struct MirrorRecords {
  typealias Fields = [String: ModelValue]

  let database: Database
  let schema: ModelSchema

  // MARK: The tables that are synchronized

  /// Returns the fields of a record as the mirror shows it, or `nil`.
  func shown(_ id: ModelRecord.ID) throws -> Fields? {
    guard let type = schema.type(id.type) else { return nil }
    let row = try Row.fetchOne(
      database, sql: "SELECT \(columns(of: type)) FROM \(quoted(type.name)) WHERE identity = ?",
      arguments: [id.identity])
    return try row.map { try fields(of: $0, type) }
  }

  /// Returns whether the mirror shows a record.
  func isShown(_ id: ModelRecord.ID) throws -> Bool {
    guard schema.type(id.type) != nil else { return false }
    return try Bool.fetchOne(
      database, sql: "SELECT EXISTS (SELECT 1 FROM \(quoted(id.type)) WHERE identity = ?)",
      arguments: [id.identity]) ?? false
  }

  func insert(_ id: ModelRecord.ID, _ fields: Fields) throws {
    let fields = fields.sorted { $0.key < $1.key }
    let names = fields.map { ", " + quoted($0.key) }.joined()
    let places = fields.map { ", " + Self.place(of: $0.value) }.joined()
    try database.execute(
      sql: "INSERT INTO \(quoted(id.type)) (identity\(names)) VALUES (?\(places))",
      arguments: StatementArguments(
        [id.identity.databaseValue] + fields.compactMap { Self.argument($0.value) }))
  }

  /// There is no row to change.
  struct RowMissing: Error {}

  /// Changes fields of a record. Throws ``RowMissing`` if the mirror does not show it.
  func update(_ id: ModelRecord.ID, _ changes: Fields) throws {
    guard !changes.isEmpty else { return }
    let changes = changes.sorted { $0.key < $1.key }
    let places = changes.map { quoted($0.key) + " = " + Self.place(of: $0.value) }
    try database.execute(
      sql: """
        UPDATE \(quoted(id.type)) SET \(places.joined(separator: ", ")) WHERE identity = ?
        """,
      arguments: StatementArguments(
        changes.compactMap { Self.argument($0.value) } + [id.identity.databaseValue]))
    guard database.changesCount > 0 else { throw RowMissing() }
  }

  /// Empty data would be bound as NULL.
  private static func place(of value: ModelValue) -> String {
    value == .data(Data()) ? "zeroblob(0)" : "?"
  }

  private static func argument(_ value: ModelValue) -> DatabaseValue? {
    value == .data(Data()) ? nil : value.databaseValue
  }

  func delete(_ id: ModelRecord.ID) throws {
    try database.execute(
      sql: "DELETE FROM \(quoted(id.type)) WHERE identity = ?", arguments: [id.identity])
  }

  private func columns(of type: ModelSchema.RecordType) -> String {
    // A type may have no fields.
    (["identity"] + type.fields.map { quoted($0.name) }).joined(separator: ", ")
  }

  private func fields(
    of row: Row, _ type: ModelSchema.RecordType
  ) throws -> Fields {
    var fields: Fields = [:]
    for (position, field) in type.fields.enumerated() {
      let value = ModelValue(row[position + 1] as DatabaseValue, as: field.kind)
      if value != .null { fields[field.name] = value }
    }
    return fields
  }

  private func quoted(_ name: String) -> String { MirrorTables.quoted(name) }

  // MARK: The tables that stay on the device

  /// Returns the fields of a record as the model is known to have it, or `nil`.
  func known(_ id: ModelRecord.ID) throws -> Fields? { try content(of: id, in: MirrorTables.known) }

  /// Returns the fields of a record as the model had it when an edit was made that is being taken, or
  /// `nil`: an import may have deleted it since.
  func former(_ id: ModelRecord.ID) throws -> Fields? {
    try known(id) ?? content(of: id, in: MirrorTables.gone)
  }

  /// Notes that an import has deleted a record from the model.
  func setGone(_ id: ModelRecord.ID) throws {
    if let fields = try known(id) { try set(id, fields, in: MirrorTables.gone) }
    try setKnown(id, nil)
  }

  /// Forgets what imports have deleted, apart from records to which waiting ones refer.
  func forgetGone() throws {
    guard try !isEmpty(MirrorTables.gone) else { return }
    let references = Set(try waiting().flatMap(\.references))
    for id in try names(in: MirrorTables.gone) where !references.contains(id) {
      try set(id, nil, in: MirrorTables.gone)
    }
  }

  /// Notes how the model has a record; `nil` notes that it does not have it.
  func setKnown(_ id: ModelRecord.ID, _ fields: Fields?) throws {
    try set(id, fields, in: MirrorTables.known)
  }

  /// The records that wait until their tables can have them.
  func waiting() throws -> [ModelRecord] {
    try records(in: MirrorTables.waiting).map { ModelRecord(id: $0.id, fields: $0.fields ?? [:]) }
  }

  /// Lets a record wait; `nil` ends that.
  func setWaiting(_ id: ModelRecord.ID, _ fields: Fields?) throws {
    try set(id, fields, in: MirrorTables.waiting)
  }

  /// The names of the records that wait.
  func waitingNames() throws -> Set<ModelRecord.ID> { Set(try names(in: MirrorTables.waiting)) }

  /// The records that were taken and whose acknowledgement may be missing.
  func taken() throws -> [ModelRecord.ID] { try names(in: MirrorTables.taken) }

  /// Notes that records are taken, or that their acknowledgement is not missing.
  func setTaken(_ ids: [ModelRecord.ID], _ isTaken: Bool) throws {
    for id in ids { try set(id, isTaken ? [:] : nil, in: MirrorTables.taken) }
  }

  /// The records that the model has deleted, and that are still in their tables.
  func deletions() throws -> [ModelRecord.ID] { try names(in: MirrorTables.deletions) }

  /// Notes that the model has deleted a record, or that this is done or void.
  func setDeletion(_ id: ModelRecord.ID, _ isPending: Bool) throws {
    try set(id, isPending ? [:] : nil, in: MirrorTables.deletions)
  }

  // MARK: Problems

  /// The problems that no call has returned.
  func problems() throws -> [ModelReport.Problem] {
    try Row.fetchAll(
      database,
      sql: """
        SELECT kind, type, identity, message, remedy FROM \(MirrorTables.problems) ORDER BY number
        """
    ).map { row in
      let type: String? = row[1]
      let identity: String? = row[2]
      return .init(
        kind: .init(rawValue: row[0]),
        record: type.flatMap { type in identity.map { .init(type: type, identity: $0) } },
        message: row[3], remedy: row[4])
    }
  }

  /// Keeps problems until a call returns them.
  func add(_ problems: [ModelReport.Problem]) throws {
    for problem in problems {
      try database.execute(
        sql: """
          INSERT INTO \(MirrorTables.problems) (kind, type, identity, message, remedy)
          VALUES (?, ?, ?, ?, ?)
          """,
        arguments: [
          problem.kind.rawValue, problem.record?.type, problem.record?.identity, problem.message,
          problem.remedy,
        ])
    }
  }

  /// Removes problems of a kind that have gone.
  func removeProblems(_ kind: ModelReport.Problem.Kind, with id: ModelRecord.ID) throws {
    try database.execute(
      sql: "DELETE FROM \(MirrorTables.problems) WHERE kind = ? AND type = ? AND identity = ?",
      arguments: [kind.rawValue, id.type, id.identity])
  }

  // MARK: Imports

  /// What the import under way gives to the model; no fields mean a deletion.
  func underWay() throws -> [(id: ModelRecord.ID, fields: Fields?)] {
    try records(in: MirrorTables.underWay)
  }

  /// Notes that the import under way saves or deletes a record.
  func addUnderWay(_ id: ModelRecord.ID, _ fields: Fields?) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO \(MirrorTables.underWay) VALUES (?, ?, ?)",
      arguments: [id.type, id.identity, fields.map(RecordCoding.encode)])
  }

  /// Whether one of the tables is empty.
  func isEmpty(_ table: String) throws -> Bool {
    try Row.fetchOne(database, sql: "SELECT 1 FROM \(table)") == nil
  }

  /// Empties one of the tables.
  func clear(_ table: String) throws { try database.execute(sql: "DELETE FROM \(table)") }

  /// Returns a value of the mirror itself.
  func state(_ name: String) throws -> String? {
    try String.fetchOne(
      database, sql: "SELECT value FROM \(MirrorTables.state) WHERE name = ?", arguments: [name])
  }

  /// Sets a value of the mirror itself; `nil` removes it.
  func setState(_ name: String, _ value: String?) throws {
    try database.execute(
      sql: "INSERT OR REPLACE INTO \(MirrorTables.state) VALUES (?, ?)", arguments: [name, value])
  }

  private func content(of id: ModelRecord.ID, in table: String) throws -> Fields? {
    try Data.fetchOne(
      database, sql: "SELECT content FROM \(table) WHERE type = ? AND identity = ?",
      arguments: [id.type, id.identity]
    ).map(RecordCoding.decode)
  }

  private func set(_ id: ModelRecord.ID, _ fields: Fields?, in table: String) throws {
    if let fields {
      try database.execute(
        sql: "INSERT OR REPLACE INTO \(table) VALUES (?, ?, ?)",
        arguments: [id.type, id.identity, RecordCoding.encode(fields)])
    } else {
      try database.execute(
        sql: "DELETE FROM \(table) WHERE type = ? AND identity = ?",
        arguments: [id.type, id.identity])
    }
  }

  private func names(in table: String) throws -> [ModelRecord.ID] {
    try Row.fetchAll(
      database, sql: "SELECT type, identity FROM \(table) ORDER BY type, identity"
    ).map { .init(type: $0[0], identity: $0[1]) }
  }

  private func records(in table: String) throws -> [(id: ModelRecord.ID, fields: Fields?)] {
    try Row.fetchAll(
      database, sql: "SELECT type, identity, content FROM \(table) ORDER BY type, identity"
    ).map { row in
      (
        ModelRecord.ID(type: row[0], identity: row[1]),
        try (row[2] as Data?).map(RecordCoding.decode)
      )
    }
  }

  // MARK: Both

  /// The records that the mirror shows otherwise than the model is known to have them.
  struct Differences {
    /// Those to save, with the records to which they refer.
    var saved: [ModelRecord.ID: [ModelRecord.ID]] = [:]
    /// Those to delete, with the records to which they referred.
    var deleted: [ModelRecord.ID: [ModelRecord.ID]] = [:]

    var isEmpty: Bool { saved.isEmpty && deleted.isEmpty }
  }

  /// Compares all records, apart from those with an edit or a deletion that waits: nothing may overwrite it.
  func differences() throws -> Differences {
    var differences = Differences()
    let waiting = try waitingNames().union(deletions())
    for type in schema.types {
      let table = quoted(type.name)
      let names = (["identity"] + type.fields.map { quoted($0.name) }).map { "m." + $0 }
      let shown = try Row.fetchCursor(
        database,
        sql: """
          SELECT \(names.joined(separator: ", ")), k.content FROM \(table) m
            LEFT JOIN \(MirrorTables.known) k ON k.type = ? AND k.identity = m.identity
          """, arguments: [type.name])
      while let row = try shown.next() {
        let fields = try fields(of: row, type)
        guard row[type.fields.count + 1] as Data? != RecordCoding.encode(fields) else { continue }
        let record = ModelRecord(type: type.name, identity: row[0], fields: fields)
        if !waiting.contains(record.id) { differences.saved[record.id] = record.references }
      }
      let gone = try Row.fetchCursor(
        database,
        sql: """
          SELECT identity, content FROM \(MirrorTables.known) k WHERE type = ?
            AND NOT EXISTS (SELECT 1 FROM \(table) m WHERE m.identity = k.identity)
          """, arguments: [type.name])
      while let row = try gone.next() {
        let id = ModelRecord.ID(type: type.name, identity: row[0])
        let fields = try RecordCoding.decode(row[1])
        if !waiting.contains(id) {
          differences.deleted[id] = ModelRecord(id: id, fields: fields).references
        }
      }
    }
    return differences
  }
}

extension ModelValue {
  /// Reads a value of a field. A value of another kind, which only another program can have written, stays
  /// what it is.
  fileprivate init(_ value: DatabaseValue, as kind: ModelSchema.Field.Kind) {
    switch (value.storage, kind) {
    case (.null, _): self = .null
    case (.int64(let number), .real): self = .real(Double(number))
    case (.int64(let number), _): self = .integer(number)
    case (.double(let number), _): self = .real(number)
    case (.string(let text), .reference(let type, _)):
      self = .reference(.init(type: type, identity: text))
    case (.string(let text), _): self = .text(text)
    case (.blob(let data), _): self = .data(data)
    }
  }

  /// The value as SQLite stores it. A reference is the identity of its record.
  var databaseValue: DatabaseValue {
    switch self {
    case .null: .null
    case .integer(let value): value.databaseValue
    case .real(let value): value.databaseValue
    case .text(let value): value.databaseValue
    case .data(let value): value.databaseValue
    case .reference(let id): id.identity.databaseValue
    }
  }
}
