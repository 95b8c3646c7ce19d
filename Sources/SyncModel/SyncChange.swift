/// The effect of a change on its row. The raw values are those of the format.
package enum RowAction: UInt8, Sendable, CaseIterable {
  /// The row exists from now on, with all the columns that the author knows.
  case insert = 0
  /// Some columns of a row have new values; its existence is not touched.
  case update = 1
  /// The row exists no longer. Its cells stay stored: a row that refers to it
  /// may bring it back.
  case delete = 2
  /// The row and its cells exist no longer. Cells with an older stamp have no effect, whenever they
  /// arrive.
  case erase = 3

  /// Whether the row exists no longer.
  package var isDeletion: Bool { self == .delete || self == .erase }
}

/// How a row of a table is recognized on every device.
package enum IdentityKind: UInt8, Sendable, CaseIterable, Codable {
  /// The values of the primary key.
  case primaryKey = 0
  /// Sixteen random bytes beside a local integer key.
  case surrogate = 1
  /// The values of declared columns beside a local key.
  case columns = 2
}

/// The changes of one change set to one table, column by column.
///
/// Each row appears once. Row `r` has cells only for the columns `shapes[rowShapes[r]]`. The index
/// of such a cell in its column is the number of rows before `r` that also have the column.
package struct TableChanges: Hashable, Sendable {
  /// The table's name in the author's schema.
  package var table: SQLName
  /// How rows are identified.
  package var identity: IdentityKind
  /// The names of the columns in ``keys``. For surrogates: the key column.
  package var keyColumns: [SQLName]
  /// The names of the columns in ``cells``.
  package var columns: [SQLName]

  /// The raw value of each row's `RowAction`.
  package var actions: [UInt8] = []
  /// The identities. `primaryKey`, `columns`: one column for each key column,
  /// with the author's spelling of the values. `surrogate`: first the 16
  /// bytes as a blob, then the author's local key as a hint.
  package var keys: [ValueColumn]
  /// The time of each row's change. It is the time of the row's existence for an insert
  /// or a delete, and of every cell that ``exceptions`` does not name.
  package var times: [HybridTime] = []
  /// Rows and cells with another stamp, in order of row, then column.
  package var exceptions: [StampException] = []
  /// Distinct sets of columns, each in ascending order.
  package var shapes: [[Int]] = []
  /// The index of each row's set. A delete has the columns that the author changed before it; an
  /// erase has none.
  package var rowShapes: [UInt32] = []
  /// The values, one entry for each of ``columns``.
  package var cells: [ValueColumn]
  /// Deleted rows whose key was changed, in order of row, each with the row's new
  /// identity.
  package var moves: [RowMove] = []

  /// Creates an empty list of changes to a table.
  package init(table: SQLName, identity: IdentityKind, keyColumns: [SQLName], columns: [SQLName]) {
    self.table = table
    self.identity = identity
    self.keyColumns = keyColumns
    self.columns = columns
    keys = Array(repeating: ValueColumn(), count: identity == .surrogate ? 2 : keyColumns.count)
    cells = Array(repeating: ValueColumn(), count: columns.count)
  }

  /// The number of rows.
  package var count: Int { actions.count }

  /// About how much memory the changes take.
  package var byteCount: Int {
    keys.reduce(0) { $0 + $1.byteCount } + cells.reduce(0) { $0 + $1.byteCount }
      + moves.reduce(0) { $0 + $1.destination.bytes.count }
      + 16 * actions.count + 24 * exceptions.count
  }
}

extension TableChanges {
  /// The number of rows, shapes, values and exceptions, which ``CodecLimits`` bounds.
  var valueCount: Int {
    (keys + cells).reduce(count + shapes.count + exceptions.count) { $0 + $1.count }
  }
}

/// A row or a cell whose stamp differs from its row's time and the change set's author.
package struct StampException: Hashable, Sendable {
  /// The index of the row.
  package var row: Int
  /// The index of the column; `nil` for the row's existence, or, if an update
  /// names the version of a row that it replaces, for that version.
  package var column: Int?
  /// The stamp that the row or the cell has instead.
  package var stamp: Stamp

  /// Creates an exception from its parts.
  package init(row: Int, column: Int?, stamp: Stamp) {
    self.row = row
    self.column = column
    self.stamp = stamp
  }
}

/// The new identity of a row whose key was changed.
package struct RowMove: Hashable, Sendable {
  /// The index of the deleted row.
  package var row: Int
  /// Its new identity.
  package var destination: RowIdentity

  /// Creates a move from its parts.
  package init(row: Int, destination: RowIdentity) {
    self.row = row
    self.destination = destination
  }
}
