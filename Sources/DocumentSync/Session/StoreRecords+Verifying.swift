import SyncModel
import SyncStore

/// The records of a store that `verify` reads.
extension StoreRecords {
  /// Returns the keys of the records that cannot be decoded, and why.
  static func damage(in records: [String: [UInt8]]) -> [(key: String, reason: String)] {
    Key.allCases.compactMap { key in
      guard let bytes = records[key.rawValue] else { return nil }
      do {
        try check(key, bytes)
        return nil
      } catch {
        return (key.rawValue, "\(error)")
      }
    }
  }

  private static func check(_ key: Key, _ bytes: [UInt8]) throws {
    guard let type = key.type else { return }
    _ = try StoredJSON.read(type, from: bytes)
  }

  /// Returns the last RecentSync from a store's records; `nil` before the
  /// first, or if it cannot be decoded.
  static func ownMarker(in records: [String: [UInt8]]) -> OwnMarker? {
    guard let bytes = records[Key.ownMarker.rawValue] else { return nil }
    do {
      return try StoredJSON.read(from: bytes)
    } catch {
      // ``damage(in:)`` reports it.
      return nil
    }
  }

  /// Returns the change sets of others that a store could not apply, from its
  /// records; none if the record cannot be decoded.
  static func refused(in records: [String: [UInt8]]) -> [SyncReport.Wait] {
    guard let bytes = records[Key.refused.rawValue] else { return [] }
    do {
      return try StoredJSON.read(from: bytes)
    } catch {
      // ``damage(in:)`` reports it.
      return []
    }
  }
}
