import SyncStore

extension MergedRows {
  /// The outcome of the merge, as sentences.
  var lines: [String] {
    var lines = [
      "Of its rows, \(insertedRows) were new, \(equalRows) the same, and \(differingRows) had "
        + "other values."
    ]
    if movedRows > 0 { lines.append("\(counted(movedRows, "row")) got another key.") }
    if refusedRows > 0 { lines.append("\(counted(refusedRows, "row")) could not be merged.") }
    if !newTables.isEmpty {
      lines.append("New in the document: \(newTables.joined(separator: ", ")).")
    }
    return lines
  }
}
