/// How concurrent changes to the rows of a table merge.
///
/// A merge type is part of the document and the same on every device, so that all devices compute
/// the same result. Documentation/Merging.md has the exact rules.
public enum TableMergeType: String, Hashable, Sendable, Codable, CaseIterable {
  /// The later edit of each column wins; a deletion wins over edits.
  case latestWins
  /// As ``latestWins``, but an edit wins over a deletion whose author had not seen it.
  case editWins
  /// The row is one register: an edit of one column counts as an edit of all.
  case wholeRow
  /// As ``wholeRow``, and the losing version becomes a row of its own.
  case keepBoth
}

/// How concurrent changes to a column merge.
public enum ColumnMergeType: String, Hashable, Sendable, Codable, CaseIterable {
  /// The later edit wins.
  case latestWins
  /// A number to which all edits add their differences.
  case counter
}
