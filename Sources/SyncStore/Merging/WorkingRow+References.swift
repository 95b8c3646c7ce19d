import SyncModel

extension WorkingRow {
  /// Returns the logical values of the columns that a reference to this row names.
  ///
  /// - Parameter isShown: Whether to return the values that are shown.
  func referredValues(
    _ reference: ForeignKey, _ table: TableSchema, isShown: Bool = true
  ) -> [Value] {
    reference.parentColumns.map { name in
      if name.folded == table.localKey?.folded { return .identity(key.identity) }
      return table.columns.firstIndex { $0.name.folded == name.folded }
        .flatMap { isShown ? shownValue($0) : values[$0] } ?? .null
    }
  }
}
