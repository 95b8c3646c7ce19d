import SyncModel
import SyncStore

/// The records of a store that has taken over a whole store.
extension StoreRecords {
  /// Records that the author of the whole store with which this store began is
  /// a member, even if its marker has not arrived.
  func noteAuthor(of header: WholeStoreHeader) throws {
    var seen = try seenMarkers()
    guard seen[header.client] == nil else { return }
    seen[header.client] = Self.author(of: header)
    try keep(seen)
  }

  /// Makes from a whole store what a marker of its author would show.
  private static func author(of header: WholeStoreHeader) -> SeenMarker {
    SeenMarker(
      revision: 0, changeHead: header.vector.number(of: header.client),
      commandHead: header.commands.number(of: header.client))
  }

  /// Makes the records of a store that has taken over a whole store, which
  /// counts as verified.
  ///
  /// - Parameters:
  ///   - found: The whole store.
  ///   - client: The client of the store.
  ///   - others: The whole stores that the store has verified before; `nil` if
  ///     the whole store is of another generation, in which the store knows no
  ///     other clients yet.
  ///   - former: The former generations of the store.
  static func rebootstrapped(
    from header: WholeStoreHeader, found: RecentSyncFile.WholeStore, by client: ClientIdentifier,
    keeping others: [RecentSyncFile.WholeStore]?, former: [FormerGeneration]? = nil,
    goingOver: Bool = false
  ) throws -> [String: [UInt8]?] {
    let kept = (others ?? []).filter { $0.hash != found.hash }.suffix(7)
    var records: [String: [UInt8]?] = [
      Key.wholeStores.rawValue: try encoded(kept + [found])
    ]
    if others == nil {
      for key in Key.allCases
      where ![.setUp, .wholeStores, .formerLives, .unfinished].contains(key) {
        records.updateValue(nil, forKey: key.rawValue)
      }
      if header.client != client {
        let seen = [header.client.description: author(of: header)]
        records[Key.seenMarkers.rawValue] = try encoded(seen)
      }
    }
    if let former { records[Key.formerGenerations.rawValue] = try encoded(former) }
    if goingOver { records[Key.wentOver.rawValue] = [1] }
    return records
  }
}
