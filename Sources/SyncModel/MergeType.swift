/// How concurrent changes to the rows of a table merge.
///
/// Part of the document, the same on every device: all compute the same
/// result without a word between them. Documentation/Merging.md has the exact
/// rules.
public enum TableMergeType: String, Hashable, Sendable, Codable, CaseIterable {
  /// Column by column the later edit wins; deleting wins over editing.
  case latestWins
  /// As ``latestWins``, but an edit wins over a deletion that did not know of
  /// it.
  case editWins
  /// The row is one register: who edits a column says all of the row.
  case wholeRow
  /// As ``wholeRow``, and the version that loses lives on as a row of its
  /// own.
  case keepBoth
}

/// How concurrent changes to a column merge.
public enum ColumnMergeType: String, Hashable, Sendable, Codable, CaseIterable {
  /// The later edit wins.
  case latestWins
  /// A number to which all edits add their differences.
  case counter
}
