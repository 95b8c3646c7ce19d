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

  /// The records that were taken and whose acknowledgement may be missing.
  func taken() throws -> [ModelRecord.ID] { try records(in: MirrorTables.taken).map(\.id) }

  /// Notes that records are taken.
  func setTaken(_ ids: [ModelRecord.ID]) throws {
    try clear(MirrorTables.taken)
    for id in ids { try set(id, [:], in: MirrorTables.taken) }
  }

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

  /// Compares all records, apart from those with an edit that waits: nothing may overwrite it.
  func differences() throws -> Differences {
    var differences = Differences()
    let waiting = Set(try waiting().map(\.id))
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
