import SyncDirectory
import SyncModel
import SyncStore

/// Files that are missing or damaged and that somebody waits for.
///
/// Who waits says so in its marker, once it has waited in two synchronizations;
/// the revision in the marker's name tells that it does
/// (``MarkerName/saysWaiting``), so that the others read such markers alone,
/// each once. The author of a file puts it back, byte for byte.
struct AwaitedFiles: StoreSteps {
  /// What others wait for of this client's files.
  struct Asked {
    /// The least number of a change set.
    var changeSet: UInt64?
    /// Whether there is a command among them.
    var hasCommand = false
    /// The markers that say so.
    fileprivate var markers: [ClientIdentifier: UInt64] = [:]
  }

  let files: SharedFiles
  let store: LocalStore

  /// So many waits are said: a marker is a small file, and a forger can
  /// make this client wait for anything.
  private static let greatestCount = 1_000

  /// What of that is said to the others: of all if they are few, else first of
  /// those of whom something was applied, then of those that show themselves.
  func worthSaying(
    _ waiting: [SyncWait], _ listing: MarkerSteps.Listing
  ) throws -> [SyncWait] {
    guard waiting.count > Self.greatestCount else { return waiting }
    let applied = try store.appliedVector()
    let places = waiting.map { wait in
      applied[wait.client] != nil ? 0 : listing.newest[wait.client] != nil ? 1 : 2
    }
    let chosen = waiting.indices.sorted { (places[$0], $0) < (places[$1], $1) }
      .prefix(Self.greatestCount)
    return chosen.map { waiting[$0] }
  }

  /// Notes what this client waits for. Gives what of that has lasted since the
  /// last synchronization.
  func note(_ waiting: [SyncWait]) throws -> Set<StoreRecords.Awaited> {
    let client = client
    let awaited = Set(waiting.compactMap(StoreRecords.Awaited.init)).filter { $0.client != client }
    var waits = try records.waits()
    let lasting = awaited.intersection(waits.last)
    if waits.last != awaited {
      waits.last = awaited
      try records.keep(waits)
    }
    return lasting
  }

  /// What others wait for, by those of their markers that were not answered.
  func asked(_ listing: MarkerSteps.Listing) throws -> Asked {
    var asked = Asked()
    let new = listing.newest.filter(\.value.saysWaiting)
    guard !new.isEmpty else { return asked }
    let answered = try records.answered()
    let markers = KnownMarkers(files: files, store: store)
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

  /// Notes that what was asked for was looked after.
  func note(answered asked: Asked) throws {
    guard !asked.markers.isEmpty else { return }
    try records.keep(answered: records.answered().merging(asked.markers) { max($0, $1) })
  }
}
