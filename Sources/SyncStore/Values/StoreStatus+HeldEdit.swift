import SyncModel

extension StoreStatus {
  /// An edit that stays on the device since it has more bytes than a change set can carry.
  public struct HeldEdit: Hashable, Sendable {
    /// What is kept back.
    public enum Kind: String, Hashable, Sendable {
      /// A new row as a whole: other devices do not have it.
      case insertion
      /// Values of ``HeldEdit/columns``: other devices have former ones.
      case update
      /// The deletion of a row with a large key: other devices still have the row.
      case deletion
    }

    /// The table of the row.
    public var table: SQLName
    /// The row's key, as text.
    public var row: String
    /// The columns with large values.
    public var columns: [SQLName]
    /// What is kept back.
    public var kind: Kind
    /// About how many bytes the edit has.
    public var byteCount: Int
    /// What is kept back, as a sentence for the user.
    public var message: String
    /// What to do about it.
    public var remedy: String
  }
}
