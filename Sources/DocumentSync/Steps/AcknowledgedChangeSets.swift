import SyncDirectory
import SyncModel
import SyncStore

/// Own change sets that every member of the document has applied: the store
/// need not keep their bytes.
///
/// Nobody who is a member will read their files again. A device that joins
/// from a whole store may, and if a file is missing or damaged by then the
/// author puts a newer whole store in its place, which contains it.
struct AcknowledgedChangeSets: StoreSteps {
  let files: SharedFiles
  let store: LocalStore

  /// Gives up the bytes of what every member has applied, once there are so
  /// many that it is worth reading markers for.
  ///
  /// Without another member everything stays: the files in the directory are
  /// all that a first one to join could read.
  func forget(_ sealed: [SealedChangeSet], _ listing: MarkerSteps.Listing) throws {
    let published = sealed.filter { $0.isPublished && $0.isKept }
    let bytes = published.reduce(0) { $0 + $1.byteCount }
    guard bytes > context.environment.keptChangeSetBytes, let first = published.first else {
      return
    }
    let members = try Set(listing.newest.keys).union(records.seenMarkers().keys)
    guard !members.isEmpty else { return }
    let said = try KnownMarkers(files: files, store: store).update(listing)
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

  /// Uploads the whole store if change sets cannot be put back and no whole
  /// store that was found whole, and is there, contains them. They count as
  /// cleared away then: who waits for one of them takes the whole store.
  func replace(_ lost: [SealedChangeSet], _ report: inout SyncReport) throws {
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
      guard try WholeStoreSteps(files).uploadIfPossible(store, &report.warnings) != nil else {
        return
      }
      report.uploadedWholeStore = true
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
