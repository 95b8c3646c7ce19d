import GRDB
import SyncModel

/// The upgrade of stores in which earlier builds have noted plain values by other rules, or not at
/// all, or have not recorded the forms of keys.
struct EarlierPlainValues {
  let session: StoreSession

  /// The version of the rules by which plain values are noted. Builds with version 1 took a plain
  /// value and a reference with one number for the same value of an index with a condition or
  /// expressions. Builds with version 2 hid rows whose key contains a row that is gone
  /// (``ForeignKey/isRequired``). Builds with version 3 recorded no forms of keys (``KeyForms``).
  /// Builds with version 4 noted the unique values of hidden rows in the form of a former type.
  static let version: [UInt8] = [5]
  /// The first version whose unique values of hidden rows have the present form.
  private static let presentForms: UInt8 = 5
  /// The first version whose plain values are noted by the present rules.
  private static let presentRules: UInt8 = 3

  /// Whether a store of the present format was last written by an earlier build.
  static func isSettlingDue(_ database: Database) throws -> Bool {
    try Bookkeeping.format(of: database) == Bookkeeping.format
      && MetaTable.read(.plainValues, database) != version
  }

  /// Notes, once, the plain values that earlier builds did not note, and shows the rows that those
  /// builds hid.
  func settle() throws {
    let known = try MetaTable.read(.plainValues, session.database)
    guard known != Self.version else { return }
    try KeyForms.noteIfAbsent(session.schema, session.database)
    try noteValues(known)
    if known?.first ?? 0 < Self.presentForms {
      try RemadeTables.noteSettlingDue(session.database)
    }
    try MetaTable.write(.plainValues, to: Self.version, session.database)
  }

  private func noteValues(_ known: [UInt8]?) throws {
    if let version = known?.first, version >= Self.presentRules { return }
    if known == nil {
      try session.plainKeys.noteBeginning(session.schema)
      try showHiddenRows { !$0.isEnforced }
    } else {
      try showHiddenRows { !$0.isRequired }
    }
    if session.schema.tables.contains(where: \.hasEvaluatedReferences) {
      try RemadeTables.noteSettlingDue(session.database)
    }
  }

  /// Decides again about the hidden rows of tables with such references.
  private func showHiddenRows(ofTablesWith isMeant: (ForeignKey) -> Bool) throws {
    let set = WorkingSet(session: session)
    for table in session.schema.tables where table.foreignKeys.contains(where: isMeant) {
      for identity in try session.keptRows.identities(in: table.id) {
        try set.row(RowKey(table: table.id, identity: identity))
      }
    }
    _ = try Materializer(set: set).run()
  }
}

extension TableSchema {
  /// Whether a column that stands for keys is in a unique index with a condition or expressions.
  fileprivate var hasEvaluatedReferences: Bool {
    uniqueIndexes.contains { index in
      !index.isPlain
        && index.columns.contains { column in
          if let column, case .key = columns[column].domain { true } else { false }
        }
    }
  }
}
