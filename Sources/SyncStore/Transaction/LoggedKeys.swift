/// The local keys in a table's log that no longer lead to a row.
struct LoggedKeys {
  /// Keys that rows had before the edits, if the edits may have removed them.
  var gone: Set<Int64>
  /// Keys of rows that were inserted and removed again: change sets do not mention these rows.
  var unseen: Set<Int64>
}
