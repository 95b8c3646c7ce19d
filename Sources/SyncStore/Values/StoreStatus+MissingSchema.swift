import SyncModel

extension StoreStatus {
  /// What the schemas of other devices have and the store's lacks. No synchronization changes a
  /// schema: the application, or its user, does.
  public struct MissingSchema: Hashable, Sendable {
    /// The definitions, in an order in which they can be executed: tables, columns, indexes, views,
    /// triggers.
    public package(set) var definitions: [Definition] = []
    /// Tables, and columns as `table.column`, of which the store has rows or values of other devices
    /// (``StoreStatus/unknownNames``), and which no whole store in the directory defines.
    public package(set) var undefinedNames: [SQLName] = []

    package init() {}

    /// A part of a schema.
    public struct Definition: Hashable, Sendable {
      /// What is defined.
      public enum Kind: String, Hashable, Sendable {
        case table, column, index, view, trigger
      }

      /// The name; that of a column is `table.column`.
      public let name: SQLName
      /// What is defined.
      public let kind: Kind
      /// The statement, without a semicolon; of a column that ALTER TABLE cannot add, the definition in
      /// the statement that creates its table.
      public let sql: String
      /// Whether ``sql`` is a statement that can be executed here.
      public let isStatement: Bool

      package init(name: SQLName, kind: Kind, sql: String, isStatement: Bool) {
        self.name = name
        self.kind = kind
        self.sql = sql
        self.isStatement = isStatement
      }
    }
  }
}
