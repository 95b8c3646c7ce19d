import SyncModel

/// How many conflicts are where, as printed.
struct ConflictPlacesJSON: Encodable, Sendable {
  /// In the database.
  var inTableCount: Int
  /// In the file beside the database.
  var inArchiveCount: Int
  /// The path of that file.
  var archive: String
  /// In neither any more.
  var dropped: DroppedConflictsJSON

  init(_ places: Conflict.Places) {
    inTableCount = places.inTable
    inArchiveCount = places.inArchive
    archive = places.archive
    dropped = DroppedConflictsJSON(places.dropped)
  }

  /// The name of the file, without its folder.
  var archiveName: String { String(archive.split(separator: "/").last ?? "") }

  /// A sentence on where conflicts are; `nil` if all are in the database.
  var sentence: String? {
    guard inArchiveCount > 0 || dropped.count > 0 else { return nil }
    let lost = dropped.count > 0 ? ", \(dropped.count) no longer kept" : ""
    return "\(counted(inTableCount + inArchiveCount + dropped.count, "conflict")): \(inTableCount) "
      + "in the journal, \(inArchiveCount) in \(printable(archiveName))\(lost)"
  }
}
