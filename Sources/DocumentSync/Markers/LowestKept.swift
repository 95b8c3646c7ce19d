import SyncDirectory
import SyncModel
import SyncStore

/// For one listing, the least numbers of the clients' files that were not
/// vacuumed: from the clients' own newest markers, or from markers that record
/// them for retired clients.
///
/// A few lines of a marker can name thousands of clients. So this type reads
/// the known markers from the store once, and not once for each client.
final class LowestKept {
  private let markers: KnownMarkers
  private let listing: MarkerSteps.Listing
  private var known: [ClientIdentifier: RecentSyncFile] = [:]
  /// The least numbers that the markers in `known` record for retired clients.
  private var left: [ClientIdentifier: StoreRecords.Kept] = [:]
  /// The clients whose marker was read alone.
  private var single: Set<ClientIdentifier> = []
  private var isComplete = false

  /// Up to this number, markers are read one by one; then all are read.
  private static let singleCount = 8

  init(_ session: SyncSession, _ listing: MarkerSteps.Listing) {
    markers = KnownMarkers(session: session)
    self.listing = listing
  }

  /// The least numbers of a client's files that were not vacuumed.
  func kept(of client: ClientIdentifier) throws -> StoreRecords.Kept {
    try read(for: client)
    let (own, others) = (known[client], left[client])
    return StoreRecords.Kept(
      changeSets: max(own?.lowestKept ?? 1, others?.changeSets ?? 1),
      commands: max(own?.lowestKeptCommand ?? 1, others?.commands ?? 1))
  }

  private func read(for client: ClientIdentifier) throws {
    guard !isComplete, !single.contains(client) else { return }
    // If a client has no marker, any other marker may record its least numbers.
    isComplete = listing.newest[client] == nil || single.count >= Self.singleCount
    single.insert(client)
    known =
      isComplete ? try markers.update(listing) : try markers.update(listing) { $0 == client }
    left = [:]
    for retired in known.values.flatMap(\.retired) {
      let before = left[retired.client] ?? StoreRecords.Kept()
      left[retired.client] = StoreRecords.Kept(
        changeSets: max(before.changeSets, retired.lowestKept),
        commands: max(before.commands, retired.lowestKeptCommand))
    }
  }
}
