import Foundation
import GRDB
import SyncModel

/// An entry of the conflict journal in the archive, with names in place of the store's numbers, as
/// one line of JSON.
struct ArchivedConflict: Decodable, Equatable {
  /// A value; none of the members stands for NULL.
  struct Content: Decodable, Equatable {
    var integer: Int64?
    /// Its shortest digits, or `inf`.
    var real: String?
    var text: String?
    /// Text that is not UTF-8.
    var bytes: Data?
    var blob: Data?
    /// A reference, as the identity of a row.
    var row: Data?
  }

  struct Cell: Decodable, Equatable {
    /// `nil` for the key that the row has on this device alone.
    var column: SQLName?
    var value: Content
  }

  struct Side: Decodable, Equatable {
    var time: UInt64?
    var client: String?
    var cells: [Cell]?
  }

  var number: Int64
  /// When it was noticed, in milliseconds since 1970.
  var at: Int64
  var status: String
  var kind: String
  var table: SQLName
  var identity: Data
  var key: [Cell]
  var column: SQLName?
  var base: Content?
  var local: Side
  var remote: Side
  var rule: String
  var outcome: String
  var message: String?
}

extension ArchivedConflict.Content {
  init(_ value: Value) {
    switch value {
    case .null: break
    case .integer(let number): integer = number
    case .real(let number): real = "\(number)"
    case .text(let content):
      text = String(validating: content, as: UTF8.self)
      if text == nil { bytes = Data(content) }
    case .blob(let content): blob = Data(content)
    case .identity(let identity): row = Data(identity.bytes)
    }
  }

  var value: Value {
    if let integer { return .integer(integer) }
    if let number = real.flatMap(Double.init) { return .real(number) }
    if let text { return .text(Array(text.utf8)) }
    if let bytes { return .text(Array(bytes)) }
    if let blob { return .blob(Array(blob)) }
    if let row { return .identity(RowIdentity(bytes: Array(row))) }
    return .null
  }
}

/// Gives names to entries that leave the table of the journal.
final class ArchivedNames {
  private let database: Database
  private let clients: ClientRegistry
  private var tables: [Int: (name: SQLName, columns: [SQLName])] = [:]
  private var former: FormerNames?

  init(_ database: Database, _ clients: ClientRegistry) {
    self.database = database
    self.clients = clients
  }

  /// Returns an entry with names.
  func archived(_ entry: ConflictJournal.Entry) throws -> ArchivedConflict {
    let names = try names(of: entry.row.table)
    func name(_ position: Int) throws -> SQLName {
      if names.columns.indices.contains(position) { return names.columns[position] }
      let former = try formerNames()
      let columns = former.tables[entry.row.table]?.columns ?? former.columns[entry.row.table]
      return columns?[position]?.name ?? "column \(position)"
    }
    func cells(_ cells: [ConflictJournal.Entry.Cell]) throws -> [ArchivedConflict.Cell] {
      try cells.map { cell in
        ArchivedConflict.Cell(
          column: cell.column == ConflictTable.localKeyPosition ? nil : try name(cell.column),
          value: ArchivedConflict.Content(cell.value))
      }
    }
    func side(
      _ stamp: LocalStamp?, _ content: [ConflictJournal.Entry.Cell]?
    ) throws -> ArchivedConflict.Side {
      ArchivedConflict.Side(
        time: stamp?.time, client: stamp.map { clients.client($0.client).description },
        cells: try content.map(cells))
    }
    return ArchivedConflict(
      number: entry.number, at: entry.at, status: entry.status.rawValue,
      kind: entry.kind.rawValue, table: names.name, identity: Data(entry.row.identity.bytes),
      key: try cells(entry.key), column: try entry.column.map(name),
      base: entry.base.map(ArchivedConflict.Content.init),
      local: try side(entry.localStamp, entry.local),
      remote: try side(entry.remoteStamp, entry.remote), rule: entry.rule.rawValue,
      outcome: entry.outcome.rawValue, message: entry.message)
  }

  private func names(of id: Int) throws -> (name: SQLName, columns: [SQLName]) {
    if let known = tables[id] { return known }
    let recorded = try TableRegistry.names(of: id, database)
    let names = (
      try recorded.table ?? formerNames().tables[id]?.name ?? "table \(id)", recorded.columns
    )
    tables[id] = names
    return names
  }

  private func formerNames() throws -> FormerNames {
    if let former { return former }
    let read = try FormerNames.read(database)
    former = read
    return read
  }
}
