/// The features that random schemas and histories may contain.
package struct FleetFeatures: OptionSet, Hashable, Sendable {
  /// The bits.
  package let rawValue: Int
  /// Wraps the bits.
  package init(rawValue: Int) { self.rawValue = rawValue }

  /// UNIQUE indexes of all kinds.
  package static let unique = FleetFeatures(rawValue: 1 << 0)
  /// Foreign keys of all kinds.
  package static let references = FleetFeatures(rawValue: 1 << 1)
  /// CHECK and NOT NULL.
  package static let conditions = FleetFeatures(rawValue: 1 << 2)
  /// Generated columns.
  package static let generated = FleetFeatures(rawValue: 1 << 3)
  /// Tables and columns that stay on their device.
  package static let local = FleetFeatures(rawValue: 1 << 4)
  /// Programs that have foreign keys off.
  package static let foreignKeysOff = FleetFeatures(rawValue: 1 << 5)
  /// Updates of primary keys.
  package static let keyChanges = FleetFeatures(rawValue: 1 << 6)
  /// Keys with a collation, or of any type.
  package static let looseKeys = FleetFeatures(rawValue: 1 << 7)
  /// Triggers of the application.
  package static let triggers = FleetFeatures(rawValue: 1 << 8)

  /// Tables and columns with other merge types than the default.
  package static let mergeTypes = FleetFeatures(rawValue: 1 << 9)
  /// Devices with conflict policies of their own.
  package static let policies = FleetFeatures(rawValue: 1 << 10)

  /// Keys that may be NULL, tenants, and values at the limits.
  package static let values = FleetFeatures(rawValue: 1 << 11)
  /// Tables that a migration recreates in the middle of a history, if the devices synchronize as
  /// apps do.
  package static let remakes = FleetFeatures(rawValue: 1 << 12)
  /// Statements that return the rows that they write.
  package static let returning = FleetFeatures(rawValue: 1 << 32)
  /// Programs for which REPLACE fires delete triggers.
  package static let recursiveTriggers = FleetFeatures(rawValue: 1 << 33)
  /// Processes that end between operations.
  package static let restarts = FleetFeatures(rawValue: 1 << 34)
  /// Processes that end during a synchronization.
  package static let kills = FleetFeatures(rawValue: 1 << 35)
  /// Stores with another journal mode than SQLite's default: write-ahead, persistent or truncated.
  package static let journalModes = FleetFeatures(rawValue: 1 << 36)
  /// Managers that read several files at the same time.
  package static let parallelReads = FleetFeatures(rawValue: 1 << 37)
  /// Thresholds so small that devices divide all work into portions, and compact and remove files.
  package static let borders = FleetFeatures(rawValue: 1 << 38)
  /// Conflict journals that are full.
  package static let fullJournal = FleetFeatures(rawValue: 1 << 39)
  /// Histories with hundreds of rows and many change sets.
  package static let long = FleetFeatures(rawValue: 1 << 40)

  /// References without declaration, with values that refer to no row.
  package static let undeclared = FleetFeatures(rawValue: 1 << 41)

  /// Tables whose keys consist of references to rows with unique names.
  package static let joins = FleetFeatures(rawValue: 1 << 45)

  /// Integer keys that are references, as in one-to-one relations.
  package static let oneToOne = FleetFeatures(rawValue: 1 << 42)
  /// Rows that are identified by declared columns beside their integer key.
  package static let identities = FleetFeatures(rawValue: 1 << 43)

  /// Migrations by ALTER in the middle of a history.
  package static let alters = FleetFeatures(rawValue: 1 << 44)

  /// Long histories that reach 200 rows and 60 change sets.
  package static let large = FleetFeatures(rawValue: 1 << 46)
  /// More managers where thresholds are small: only they join files and remove them.
  package static let managedBorders = FleetFeatures(rawValue: 1 << 47)

  /// Migrations that add columns to tables whose rows are one register, and drop them.
  package static let registerColumns = FleetFeatures(rawValue: 1 << 48)
  /// Rows with NULL in their key are there before syncing begins.
  package static let missingKeys = FleetFeatures(rawValue: 1 << 49)
  /// Migrations that recreate tables whose rows have declared columns, or refer to such rows by
  /// their keys.
  package static let numberedRemakes = FleetFeatures(rawValue: 1 << 50)
  /// Tenants that are removed although a key without a reference to them contains them.
  package static let freeTenants = FleetFeatures(rawValue: 1 << 51)
  /// Keys with plain numbers in columns that refer without a declaration.
  package static let plainKeys = FleetFeatures(rawValue: 1 << 52)
  /// Values and keys that no change set can carry.
  package static let heldEdits = FleetFeatures(rawValue: 1 << 53)
  /// Devices that make one half of a synchronization alone, and programs that hear of changed rows.
  package static let halves = FleetFeatures(rawValue: 1 << 54)
  /// Devices that delete many rows only when they are told to.
  package static let deletionLimits = FleetFeatures(rawValue: 1 << 55)
  /// The least integer as a real, which columns of integers keep apart from that integer.
  package static let leastReals = FleetFeatures(rawValue: 1 << 56)

  /// Names that must be quoted and are easily taken for others, and such keys.
  package static let hostileNames = FleetFeatures(rawValue: 1 << 57)

  /// Processes that end during a half of a synchronization.
  package static let killedHalves = FleetFeatures(rawValue: 1 << 58)

  /// Tables that cannot be synchronized, since they have no primary key.
  package static let looseTables = FleetFeatures(rawValue: 1 << 59)

  /// References to integer keys from columns of texts, or of any type.
  package static let affinities = FleetFeatures(rawValue: 1 << 60)

  /// References to unique columns that are references themselves.
  package static let chains = FleetFeatures(rawValue: 1 << 61)

  /// Excluded tables that refer to synchronized ones.
  package static let marks = FleetFeatures(rawValue: 1 << 62)

  /// Migrations by which a key gets another affinity.
  package static let keyForms = FleetFeatures(rawValue: 1 << 63)

  /// Policies with the functions of the library.
  package static let functions = FleetFeatures(rawValue: 1 << 13)

  /// All features: the default.
  package static let all = names.reduce(into: FleetFeatures()) { $0.insert($1.feature) }

  /// The features that ``Fleet/Options/always`` may contain.
  package static let optional: FleetFeatures = [
    .heldEdits, .hostileNames, .killedHalves, .looseTables, .functions, .affinities, .chains,
    .marks, .keyForms,
  ]

  /// The features before those were added that change what a seed stands for. Histories that failed
  /// before then are repeated with these.
  package static let former = all.subtracting([
    .large, .managedBorders, .registerColumns, .missingKeys, .numberedRemakes,
    .freeTenants, .plainKeys, .deletionLimits, .heldEdits, .halves, .leastReals,
    .hostileNames, .killedHalves, .looseTables, .functions, .affinities, .chains,
    .marks, .keyForms,
  ])

  /// The features by name.
  package static let names: [(name: String, feature: FleetFeatures)] = [
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
    ("large", .large), ("managedBorders", .managedBorders), ("registerColumns", .registerColumns),
    ("missingKeys", .missingKeys), ("numberedRemakes", .numberedRemakes),
    ("freeTenants", .freeTenants), ("plainKeys", .plainKeys), ("deletionLimits", .deletionLimits),
    ("heldEdits", .heldEdits),
    ("halves", .halves), ("leastReals", .leastReals), ("hostileNames", .hostileNames),
    ("killedHalves", .killedHalves), ("looseTables", .looseTables),
    ("functions", .functions), ("affinities", .affinities),
    ("chains", .chains), ("marks", .marks), ("keyForms", .keyForms),
  ]
}
