import GRDB
import SyncModel

/// A reference from one table to another, declared or implied.
struct ForeignKey: Hashable {
  /// The action on a row when the row that it refers to is deleted.
  enum DeleteAction: Hashable {
    /// RESTRICT and NO ACTION: the other row must not be deleted.
    case refuse
    case cascade
    case setNull
    case setDefault
  }

  /// A number that is unique in the schema as it was read.
  var ordinal: Int
  var child: Int
  /// Positions of the child's columns.
  var columns: [Int]
  var parent: Int
  /// The parent's columns, by name: its local key may be among them.
  var parentColumns: [SQLName]
  var onDelete: DeleteAction
  /// Whether SQLite enforces it. If not, it follows from other references, or was declared when
  /// syncing began; a value that leads to no row then stays as it is.
  var isEnforced = true
  /// Whether a row is hidden while the row to which it refers is not shown. It is not if SQLite does
  /// not enforce the reference and the reference is part of the row's key: then nothing can be shown
  /// in place of the key (``StoreSchema/namers(of:)``).
  var isRequired = true

  /// Whether a row that this key refers to must not be deleted alone.
  var holds: Bool { onDelete == .refuse || onDelete == .cascade }
}
