/// What random schemas and histories may contain.
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

  /// Tables and columns that merge otherwise than cell by cell.
  public static let mergeTypes = FleetFeatures(rawValue: 1 << 9)
  /// Devices that decide conflicts otherwise than by stamps, each in its own
  /// way.
  public static let policies = FleetFeatures(rawValue: 1 << 10)

  /// Everything.
  public static let all = FleetFeatures(rawValue: (1 << 11) - 1)

  /// The features by name.
  public static let names: [(name: String, feature: FleetFeatures)] = [
    ("unique", .unique), ("references", .references), ("conditions", .conditions),
    ("generated", .generated), ("local", .local), ("foreignKeysOff", .foreignKeysOff),
    ("keyChanges", .keyChanges), ("looseKeys", .looseKeys),
    ("triggers", .triggers), ("mergeTypes", .mergeTypes), ("policies", .policies),
  ]
}
