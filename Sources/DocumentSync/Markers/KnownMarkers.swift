import SyncDirectory
import SyncModel
import SyncStore

/// The content of the others' newest markers. Each is read once; while it
/// cannot be read, the content of an earlier one counts.
struct KnownMarkers: StoreSteps {
  let session: SyncSession

  /// Reads the markers of a listing that are newer than the known ones, of all
  /// clients or of the wanted ones, and returns all known markers.
  @discardableResult
  func update(
    _ listing: MarkerSteps.Listing, where isWanted: (ClientIdentifier) -> Bool = { _ in true }
  ) throws -> [ClientIdentifier: RecentSyncFile] {
    let before = try records.readMarkers()
    var known = MarkersInMemory(before)
    for (client, name) in listing.newest where isWanted(client) {
      guard name.revision > before[client]?.revision ?? 0 else { continue }
      guard var marker = try read(name) else { continue }
      marker.waiting = []
      known.add(marker, for: client)
    }
    for client in known.leftOut {
      context.environment.logger.notice("there are too many markers for that of \(client)")
    }
    if known.markers != before { try records.keep(known.markers) }
    return known.markers
  }

  /// Reads a marker; `nil` if it cannot be read, or belongs to another document
  /// or generation.
  func read(_ name: MarkerName) throws -> RecentSyncFile? {
    let binding = binding
    let path = layout.path(of: name)
    do {
      let marker = try files.read(path, as: RecentSyncFile.self, .recentSync)
      guard marker.client == name.client, marker.revision == name.revision,
        marker.generation == binding.generation, marker.document == binding.document
      else {
        context.environment.logger.notice("marker \(name) belongs elsewhere")
        return nil
      }
      return marker
    } catch let error where error.concernsOneFile {
      // The marker is read again at the next pass, or a newer one is.
      context.environment.logger.notice("marker \(name): \(error)")
      return nil
    }
  }
}
