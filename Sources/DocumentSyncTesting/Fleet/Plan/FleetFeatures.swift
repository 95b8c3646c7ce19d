/// The features that random schemas and histories may contain.
public struct FleetFeatures: OptionSet, Hashable, Sendable {
  /// The bits.
  public let rawValue: Int
  /// Wraps the bits.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// UNIQUE indexes of all kinds.
  public static let unique = FleetFeatures(rawValue: 1 << 0)
  /// Foreign keys of all kinds.
  public static let references = FleetFeatures(rawValue: 1 << 1)
  /// CHECK and NOT NULL.
  public static let conditions = FleetFeatures(rawValue: 1 << 2)
  /// Generated columns.
  public static let generated = FleetFeatures(rawValue: 1 << 3)
  /// Tables and columns that stay on their device.
  public static let local = FleetFeatures(rawValue: 1 << 4)
  /// Programs that have foreign keys off.
  public static let foreignKeysOff = FleetFeatures(rawValue: 1 << 5)
  /// Updates of primary keys.
  public static let keyChanges = FleetFeatures(rawValue: 1 << 6)
  /// Keys with a collation, or of any type.
  public static let looseKeys = FleetFeatures(rawValue: 1 << 7)
  /// Triggers of the application's own.
  public static let triggers = FleetFeatures(rawValue: 1 << 8)

  /// Tables and columns that do not merge cell by cell.
  public static let mergeTypes = FleetFeatures(rawValue: 1 << 9)
  /// Devices that do not decide conflicts by stamps, each in its own
  /// way.
  public static let policies = FleetFeatures(rawValue: 1 << 10)

  /// Keys that may be NULL, tenants, and values at the limits.
  public static let values = FleetFeatures(rawValue: 1 << 11)
  /// Tables that a migration makes again in the middle of a history, if the
  /// devices synchronize as apps do.
  public static let remakes = FleetFeatures(rawValue: 1 << 12)
  /// Statements that ask for the rows that they write.
  public static let returning = FleetFeatures(rawValue: 1 << 32)
  /// Programs for which REPLACE fires delete triggers.
  public static let recursiveTriggers = FleetFeatures(rawValue: 1 << 33)
  /// Processes that end between operations.
  public static let restarts = FleetFeatures(rawValue: 1 << 34)
  /// Processes that end in the middle of synchronizing.
  public static let kills = FleetFeatures(rawValue: 1 << 35)
  /// Stores with other journals than SQLite's usual one: write-ahead, kept,
  /// truncated.
  public static let journalModes = FleetFeatures(rawValue: 1 << 36)
  /// Managers that read several files at a time.
  public static let parallelReads = FleetFeatures(rawValue: 1 << 37)
  /// Thresholds so small that all work is divided into several portions, and
  /// that files are joined and removed.
  public static let borders = FleetFeatures(rawValue: 1 << 38)
  /// Conflict journals that are full.
  public static let fullJournal = FleetFeatures(rawValue: 1 << 39)
  /// Histories with hundreds of rows and many change sets.
  public static let long = FleetFeatures(rawValue: 1 << 40)

  /// References that are not declared, with values that refer to nothing.
  public static let undeclared = FleetFeatures(rawValue: 1 << 41)

  /// Tables whose keys are made of references to rows with unique names.
  public static let joins = FleetFeatures(rawValue: 1 << 45)

  /// Integer keys that are references, as in one-to-one relations.
  public static let oneToOne = FleetFeatures(rawValue: 1 << 42)
  /// Rows that are identified by declared columns beside their integer key.
  public static let identities = FleetFeatures(rawValue: 1 << 43)

  /// Migrations by ALTER in the middle of a history.
  public static let alters = FleetFeatures(rawValue: 1 << 44)

  /// All features: the default.
  public static let all = names.reduce(into: FleetFeatures()) { $0.insert($1.feature) }

  /// The features by name.
  public static let names: [(name: String, feature: FleetFeatures)] = [
    ("unique", .unique), ("references", .references), ("conditions", .conditions),
    ("generated", .generated), ("local", .local), ("foreignKeysOff", .foreignKeysOff),
    ("keyChanges", .keyChanges), ("looseKeys", .looseKeys),
    ("triggers", .triggers), ("mergeTypes", .mergeTypes), ("policies", .policies),
    ("values", .values),
    ("remakes", .remakes),
    ("returning", .returning), ("recursiveTriggers", .recursiveTriggers),
    ("restarts", .restarts), ("kills", .kills), ("journalModes", .journalModes),
    ("parallelReads", .parallelReads), ("borders", .borders), ("fullJournal", .fullJournal),
    ("long", .long), ("undeclared", .undeclared), ("joins", .joins),
    ("oneToOne", .oneToOne), ("identities", .identities), ("alters", .alters),
  ]
}
