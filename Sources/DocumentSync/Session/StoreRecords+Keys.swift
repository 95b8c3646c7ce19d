import SyncModel
import SyncStore

extension StoreRecords {
  /// The keys of the records.
  enum Key: String, CaseIterable {
    case setUp, seenMarkers, wholeStores, readMarkers, retiredKept, absences, unverified, replaced,
      reset, mergesInto, ancestors, formerGenerations, asked, refused, unsound,
      rebootstrap, formerLives, answered
    // The last marker of the store's former client, until it is among the seen
    // ones.
    case formerMarker = "former.marker"
    // When the store becomes another client, it drops the records of the former
    // one.
    case rejoins = "client.rejoins"
    case wentOver = "client.wentOver"
    case unfinished = "client.unfinished"
    case ownMarker = "client.marker"
    case kept = "client.kept"
    case segments = "client.segments"
    case housekeeping = "client.housekeeping"
    case waits = "client.waits"

    /// The type of the value; `nil` for a record whose presence is all its content.
    var type: (any StoredValue.Type)? {
      switch self {
      case .setUp, .rejoins, .wentOver, .unfinished: nil
      case .seenMarkers: [String: SeenMarker].self
      case .wholeStores: [RecentSyncFile.WholeStore].self
      case .readMarkers: [String: RecentSyncFile].self
      case .retiredKept: [String: Kept].self
      case .absences: [String: Absence].self
      case .unverified: [String: Int].self
      case .replaced: [ClientIdentifier].self
      case .reset: SyncCommand.Reset.self
      case .mergesInto: IntegrityKey.self
      case .ancestors: Ancestors.self
      case .formerGenerations: [FormerGeneration].self
      case .asked: [String: UInt64].self
      case .refused: [SyncReport.Wait].self
      case .unsound: [String].self
      case .rebootstrap: SyncReport.Rebootstrap.self
      case .formerLives: [FormerLife].self
      case .ownMarker, .formerMarker: OwnMarker.self
      case .kept: Kept.self
      case .segments: [RecentSyncFile.Segment].self
      case .housekeeping: Vacuumed.self
      case .waits: Waits.self
      case .answered: [String: UInt64].self
      }
    }
  }
}
