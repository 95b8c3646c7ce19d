import SyncDirectory
import SyncModel
import SyncStore

/// Missing or damaged files that another device waits for.
///
/// A device names the files in its marker once it has waited for them in two
/// synchronizations. The revision in the marker's name shows that it waits
/// (``MarkerName/saysWaiting``), so that the others read only such markers, and
/// each of them once. The author of a file restores it, byte for byte.
struct AwaitedFiles: StoreSteps {
  /// The files of this client that others wait for.
  struct Asked {
    /// The least number of an awaited change set.
    var changeSet: UInt64?
    /// Whether a command is awaited.
    var hasCommand = false
    /// The markers that name them.
    fileprivate var markers: [ClientIdentifier: UInt64] = [:]
  }

  let session: SyncSession

  /// The most waits that a marker names: a marker is a small file, and forged
  /// files can make this client wait for anything.
  private static let greatestCount = 1_000

  /// Returns the waits to name in the marker. If there are too many, first come
  /// those for clients whose change sets were applied, then those for clients
  /// that have a marker.
  func worthSaying(
    _ waiting: [SyncReport.Wait], _ listing: MarkerSteps.Listing
  ) throws -> [SyncReport.Wait] {
    guard waiting.count > Self.greatestCount else { return waiting }
    let applied = try store.appliedVector()
    let places = waiting.map { wait in
      applied[wait.client] != nil ? 0 : listing.newest[wait.client] != nil ? 1 : 2
    }
    let chosen = waiting.indices.sorted { (places[$0], $0) < (places[$1], $1) }
      .prefix(Self.greatestCount)
    return chosen.map { waiting[$0] }
  }

  /// Records the waits of this client. Returns those that have lasted since the
  /// last synchronization.
  func note(_ waiting: [SyncReport.Wait]) throws -> Set<StoreRecords.Awaited> {
    let client = client
    let awaited = Set(waiting.compactMap(StoreRecords.Awaited.init)).filter { $0.client != client }
    var waits = try records.waits()
    let lasting = awaited.intersection(waits.last)
    let former = waits
    waits.last = awaited
    waits.lasting = lasting.isEmpty ? nil : lasting
    waits.reported = waiting.isEmpty ? nil : waiting
    if waits != former { try records.keep(waits) }
    return lasting
  }

  /// Returns what others wait for, from their markers that were not answered.
  func asked(_ listing: MarkerSteps.Listing) throws -> Asked {
    var asked = Asked()
    let new = listing.newest.filter(\.value.saysWaiting)
    guard !new.isEmpty else { return asked }
    let answered = try records.answered()
    let markers = KnownMarkers(session: session)
    for (other, name) in new where name.revision > answered[other] ?? 0 {
      guard let marker = try markers.read(name) else { continue }
      asked.markers[other] = name.revision
      for wait in marker.waiting where wait.client == client {
        if wait.isCommand {
          asked.hasCommand = true
        } else {
          asked.changeSet = min(asked.changeSet ?? .max, wait.number)
        }
      }
    }
    return asked
  }

  /// Records that these markers were answered.
  func note(answered asked: Asked) throws {
    guard !asked.markers.isEmpty else { return }
    try records.keep(answered: records.answered().merging(asked.markers) { max($0, $1) })
  }
}
