import SyncModel

/// How many conflicts are where, as printed.
struct ConflictPlacesJSON: Encodable, Sendable {
  /// In the database.
  var inTableCount: Int
  /// In the file beside the database.
  var inArchiveCount: Int
  /// In that file, and not readable.
  var unreadableCount: Int
  /// The path of that file; absent if no conflict has left the database.
  var archive: String?
  /// Why the file cannot be used, and what to do; absent if it can.
  var problem: String?
  /// In neither any more.
  var dropped: DroppedConflictsJSON

  init(_ places: Conflict.Places) {
    inTableCount = places.inTable
    inArchiveCount = places.inArchive
    unreadableCount = places.unreadable
    archive = places.archive
    problem = places.problem
    dropped = DroppedConflictsJSON(places.dropped)
  }

  /// The name of the file, without its folder.
  private var archiveName: String { String(archive?.split(separator: "/").last ?? "") }

  /// A sentence on where conflicts are; `nil` if all are in the database.
  var sentence: String? {
    guard inArchiveCount > 0 || unreadableCount > 0 || dropped.count > 0 else { return nil }
    let total = inTableCount + inArchiveCount + unreadableCount + dropped.count
    var parts = ["\(inTableCount) in the journal"]
    if archive != nil { parts.append("\(inArchiveCount) in \(printable(archiveName))") }
    if unreadableCount > 0 { parts.append("\(unreadableCount) there that cannot be read") }
    if dropped.count > 0 { parts.append("\(dropped.count) no longer kept") }
    return "\(counted(total, "conflict")): \(parts.joined(separator: ", "))"
  }
}
