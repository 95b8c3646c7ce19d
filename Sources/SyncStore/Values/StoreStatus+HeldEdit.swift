import SyncModel

extension StoreStatus {
  /// An edit that stays on the device since it has more bytes than a change set can carry.
  public struct HeldEdit: Hashable, Sendable {
    /// The table of the row.
    public var table: SQLName
    /// The row's key, as text.
    public var row: String
    /// The columns with large values.
    public var columns: [SQLName]
    /// Whether the row as a whole is kept back. Otherwise other devices have former values in
    /// ``columns``.
    public var isInsertion: Bool
    /// About how many bytes the edit has.
    public var byteCount: Int
    /// What is kept back, as a sentence for the user.
    public var message: String
    /// What to do about it.
    public var remedy: String
  }
}
