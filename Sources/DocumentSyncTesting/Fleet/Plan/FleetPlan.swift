import DocumentSync
import SyncModel

/// The plan of a simulated history: everything that is to happen. It is a pure function of the
/// seed, and nothing else is random.
struct FleetPlan: Sendable {
  /// The seed for clients and identities.
  var seed: UInt64
  var schema: FleetSchema
  /// The statements that fill the store before it is put under sync. Statements that the schema
  /// refuses are skipped.
  var start: [String]
  /// Statements that then insert rows with NULL in their key, which stay on the first device.
  var rowsWithoutKey: [String] = []
  /// The numbers of the devices; the first makes the document.
  var devices: [Int]
  /// Whether the devices synchronize through managers, as apps do. If not, they seal and apply
  /// change sets directly, in random order.
  var usesManagers: Bool
  var steps: [FleetStep]
  /// The policies of devices that do not decide conflicts by stamps.
  var policies: [Int: SyncPolicies] = [:]
  var circumstances = FleetCircumstances()
  /// The migrations of all devices. Each device makes them at its own steps, and the rest at the
  /// end.
  var migrations: [FleetMigration] = []
  /// Whether it was drawn to reach the sizes of ``RandomSize``.
  var isLong = false
  /// Whether the programs hear of the rows that stores change.
  var hearsOfRows = false

  /// Whether programs create tables without a primary key.
  var hasLooseTables = false

  /// Whether devices make halves of synchronizations.
  var hasHalves: Bool {
    steps.contains { step in
      switch step {
      case .half: true
      case .kill(_, _, _, _, let extent): extent != .all
      default: false
      }
    }
  }
}

/// An event on one device.
enum FleetStep: Hashable, Sendable {
  /// A program edits the store.
  case edit(device: Int, FleetEdit)
  /// The device synchronizes. `salt` is the seed of all random choices in it.
  case sync(device: Int, time: Int64, salt: UInt64)
  /// The device makes one half of a synchronization.
  case half(device: Int, time: Int64, salt: UInt64, SynchronizeOperation.Extent)
  /// The device begins to synchronize, and its process ends at the given point. Then the process
  /// starts again and synchronizes, or does so with the same half.
  case kill(
    device: Int, time: Int64, salt: UInt64, point: Int, SynchronizeOperation.Extent = .all)
  /// The device's process ends between two operations and starts again.
  case restart(device: Int)
  /// The device makes its next migration.
  case migrate(device: Int, time: Int64)
  /// A program recreates a table in the form that it has on the device at that time.
  case remake(device: Int, FleetRemake)
  /// Each file that the device does not see yet becomes visible with the given probability, in
  /// percent.
  case arrivals(device: Int, percent: Int, salt: UInt64)
  /// One file becomes visible on a device.
  case see(device: Int, FleetFile)
  /// One file that the device has seen is invisible for a while.
  case hide(device: Int, salt: UInt64)

  var device: Int {
    switch self {
    case .edit(let device, _), .sync(let device, _, _), .arrivals(let device, _, _),
      .see(let device, _), .hide(let device, _), .half(let device, _, _, _),
      .kill(let device, _, _, _, _), .restart(let device),
      .migrate(let device, _), .remake(let device, _):
      device
    }
  }
}

/// The statements that a program runs together.
struct FleetEdit: Hashable, Sendable {
  /// The statements; several form one transaction. The program skips refused statements.
  var statements: [String]
  var hasForeignKeys: Bool
  /// Whether REPLACE fires delete triggers.
  var hasRecursiveTriggers = false
  /// The time of the device's clock, in milliseconds since 1970.
  var time: Int64
  /// The seed for the identities of new rows.
  var salt: UInt64
  /// The table that the statements recreate, by its name in change sets.
  var remade: SQLName?
}

/// A migration that recreates a table, as frameworks do: it creates and fills the table under
/// another name and renames it, or it drops, creates and fills it. The indexes and triggers of the
/// old table are dropped with it.
struct FleetRemake: Hashable, Sendable {
  /// The name of the table in change sets.
  var table: SQLName
  var dropsFirst: Bool
  /// As in ``FleetEdit``.
  var time: Int64
  var salt: UInt64

  /// Returns the statements that recreate a table.
  ///
  /// - Parameters:
  ///   - create: The statement that created the table.
  ///   - others: The statements that created its indexes and triggers.
  func edit(_ table: FleetTable, create: String, others: [String]) -> FleetEdit {
    FleetEdit(
      statements: statements(table, create: create) + others, hasForeignKeys: false, time: time,
      salt: salt, remade: self.table)
  }

  private func statements(_ table: FleetTable, create: String) -> [String] {
    let name = table.name.sql
    let new = SQLName("new__\(table.name)").sql
    let rows = SQLName("rows_\(table.name)").sql
    let columns = table.names(table.settable)
    guard dropsFirst else {
      let body = create.afterName
      return [
        "PRAGMA legacy_alter_table = ON", "CREATE TABLE \(new) \(body)",
        "INSERT INTO \(new) (\(columns)) SELECT \(columns) FROM \(name)",
        "DROP TABLE \(name)", "ALTER TABLE \(new) RENAME TO \(name)",
        "PRAGMA legacy_alter_table = OFF",
      ]
    }
    return [
      "CREATE TEMP TABLE \(rows) AS SELECT \(columns) FROM \(name)", "DROP TABLE \(name)",
      create, "INSERT INTO \(name) (\(columns)) SELECT \(columns) FROM temp.\(rows)",
      "DROP TABLE temp.\(rows)",
    ]
  }
}

extension String {
  /// What follows the name of the table in the statement that creates it.
  fileprivate var afterName: String {
    let closing: [UInt8: UInt8] = [
      UInt8(ascii: "\""): UInt8(ascii: "\""), UInt8(ascii: "`"): UInt8(ascii: "`"),
      UInt8(ascii: "["): UInt8(ascii: "]"),
    ]
    var end: UInt8?
    let rest = utf8.drop { byte in
      if let closer = end {
        if byte == closer { end = nil }
        return true
      }
      end = closing[byte]
      return byte != UInt8(ascii: "(")
    }
    return String(decoding: rest, as: UTF8.self)
  }

  /// Returns whether the text contains another, byte by byte.
  func hasBytes(_ other: String) -> Bool {
    let bytes = Array(utf8)
    let wanted = Array(other.utf8)
    guard bytes.count >= wanted.count else { return false }
    return (0...(bytes.count - wanted.count)).contains { start in
      bytes[start..<(start + wanted.count)].elementsEqual(wanted)
    }
  }
}

/// A change set or marker that devices exchange. Author, kind and number name it, since its file
/// name depends on the preceding history.
struct FleetFile: Hashable, Comparable, Sendable, CustomStringConvertible {
  enum Kind: Int, Sendable { case changeSet, marker }

  var author: Int
  var kind: Kind
  /// The number of the change set, or the revision of the marker.
  var number: UInt64

  var description: String {
    "\(kind == .changeSet ? "change set" : "marker") \(number) of device \(author)"
  }

  static func < (left: FleetFile, right: FleetFile) -> Bool {
    (left.author, left.kind.rawValue, left.number)
      < (right.author, right.kind.rawValue, right.number)
  }
}
