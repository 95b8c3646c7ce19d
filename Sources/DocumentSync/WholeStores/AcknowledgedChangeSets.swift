import SyncDirectory
import SyncModel
import SyncStore

/// Change sets of this client that every member of the document has applied:
/// the store may drop their bytes.
///
/// No member will read their files again. A device that joins from a whole
/// store may; if a file is missing or damaged then, the author publishes a
/// newer whole store, which contains its changes.
struct AcknowledgedChangeSets: StoreSteps {
  let session: SyncSession

  /// Drops the bytes of change sets that every member has applied, once they
  /// are so many that reading the markers pays.
  ///
  /// Without another member it drops nothing: the first device to join could
  /// read only the files in the directory.
  func forget(_ sealed: [SealedChangeSet], _ listing: MarkerSteps.Listing) throws {
    let published = sealed.filter { $0.isPublished && $0.isKept }
    let bytes = published.reduce(0) { $0 + $1.byteCount }
    guard bytes > context.environment.keptChangeSetBytes, let first = published.first else {
      return
    }
    let members = try Set(listing.newest.keys).union(records.seenMarkers().keys)
    guard !members.isEmpty else { return }
    let said = try KnownMarkers(session: session).update(listing)
    let client = client
    let hashes = Dictionary(
      sealed.map { ($0.number, $0.hash) }, uniquingKeysWith: { first, _ in first })
    let reached = members.map { member -> UInt64 in
      guard let applied = said[member]?.applied[client], hashes[applied.number] == applied.hash
      else {
        return 0
      }
      return applied.number
    }.min()
    guard let reached, reached >= first.number else { return }
    try store.forgetSealedBytes(through: reached)
  }

  /// Uploads the whole store if change sets cannot be restored, unless a
  /// verified whole store in the directory contains them. They then count as
  /// vacuumed: a device that waits for one of them takes the whole store.
  func replace(_ lost: [SealedChangeSet]) throws {
    guard let last = lost.map(\.number).max() else { return }
    let client = client
    let isThere = try records.wholeStores().contains { made in
      let name = WholeStoreName(number: made.number, hash: HashFragment(made.hash))
      return try made.vector.number(of: client) >= last
        && files.measure(layout.path(of: name, by: made.client)) == made.byteCount
    }
    if !isThere {
      context.environment.logger.notice(
        "change set \(last) cannot be put back: uploading the store")
      guard try WholeStoreSteps(files).uploadIfPossible(in: session) != nil else { return }
    }
    for sealed in lost {
      let name = ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash))
      try files.remove(layout.path(of: name, by: client))
    }
    var kept = try records.kept()
    guard kept.changeSets <= last else { return }
    kept.changeSets = last + 1
    try records.keep(kept)
  }
}
