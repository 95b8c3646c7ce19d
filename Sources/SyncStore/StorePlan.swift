/// How a database would be put under sync.
public struct StorePlan: Hashable, Sendable {
  /// The tables that will be synchronized.
  public var tables: [StoreStatus.TableStatus]
  /// Tables that are left out, and why.
  public var leftOut: [String: String]
  /// Columns that look like references and are not declared as such, as
  /// `table.column`, with the table that they seem to refer to.
  public var likelyReferences: [String: String]

  /// Joins the parts.
  public init(
    tables: [StoreStatus.TableStatus], leftOut: [String: String],
    likelyReferences: [String: String]
  ) {
    self.tables = tables
    self.leftOut = leftOut
    self.likelyReferences = likelyReferences
  }
}
