import SyncModel

/// The plan of putting a database under sync.
public struct StorePlan: Hashable, Sendable {
  /// The tables that will be synchronized.
  public var tables: [StoreStatus.TableStatus]
  /// Tables that will not be synchronized, with the reasons.
  public var leftOut: [SQLName: StoreStatus.LeftOutReason]
  /// Columns that look like references and are not declared as such, in order
  /// of table and column.
  public var likelyReferences: [LikelyReference]
  /// Parts of the schema that cannot be synchronized as the application means them, although
  /// nothing is refused.
  public var hints: [Hint]

  /// Creates a plan from its parts.
  package init(
    tables: [StoreStatus.TableStatus], leftOut: [SQLName: StoreStatus.LeftOutReason],
    likelyReferences: [LikelyReference], hints: [Hint] = []
  ) {
    self.tables = tables
    self.leftOut = leftOut
    self.likelyReferences = likelyReferences
    self.hints = hints
  }
}

extension StorePlan {
  /// A column that seems to refer to rows of a table without a declared foreign
  /// key.
  ///
  /// A row has another integer key on every device, so an undeclared reference would lead to other
  /// rows there. Declare it with ``StoreConfiguration/references``.
  public struct LikelyReference: Hashable, Sendable {
    /// The table that has the column.
    public var table: SQLName
    /// The column that is not declared as a reference.
    public var column: SQLName
    /// The table that it seems to refer to.
    public var parent: SQLName
    /// The number of different values that were looked at, of those that can be keys.
    public var valueCount: Int
    /// The number of these values that are keys of `parent`.
    public var matchCount: Int

    /// Creates a likely reference from its parts.
    package init(table: SQLName, column: SQLName, parent: SQLName, valueCount: Int, matchCount: Int)
    {
      self.table = table
      self.column = column
      self.parent = parent
      self.valueCount = valueCount
      self.matchCount = matchCount
    }
  }
}

extension StorePlan {
  /// A part of a schema that works on one device and may not mean the same on several.
  public struct Hint: Hashable, Sendable {
    /// The kind of a hint.
    public enum Kind: String, Hashable, Sendable {
      /// The integers in `column` identify the rows of `table`, and SQLite does not assign them: if
      /// two devices take the next number for a row, these two rows become one.
      case integerIdentity
      /// `column` holds the greatest key of another table, from which the application takes the
      /// next one.
      case keyCounter
      /// `column` of the key is NULL in some rows of `table`: they stay on this device.
      case keyMissing
      /// `trigger` of `table` needs a function or a collation, `needed`, that only the application
      /// defines: it does not run for changes from other devices.
      case triggerNeedsFunction
    }

    /// The kind of the hint.
    public var kind: Kind
    /// The table that has the column.
    public var table: SQLName
    /// The column that the hint is about; `nil` if it is about a trigger.
    public var column: SQLName?
    /// The table whose greatest key `column` holds.
    public var counted: SQLName?
    /// How many rows of `table` have NULL in their key, of a `keyMissing`.
    public var rowCount: Int?
    /// The trigger, of a `triggerNeedsFunction`.
    public var trigger: SQLName?
    /// The name of the function or the collation, of a `triggerNeedsFunction`.
    public var needed: String?

    /// Creates a hint from its parts.
    package init(
      kind: Kind, table: SQLName, column: SQLName? = nil, counted: SQLName? = nil,
      rowCount: Int? = nil, trigger: SQLName? = nil, needed: String? = nil
    ) {
      self.kind = kind
      self.table = table
      self.column = column
      self.counted = counted
      self.rowCount = rowCount
      self.trigger = trigger
      self.needed = needed
    }
  }
}
