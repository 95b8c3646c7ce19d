import Foundation
import SyncModel

/// What the markers say that were read, decoded: that takes long where they say
/// much, and one synchronization asks for it several times.
final class DecodedMarkers: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var last: (bytes: [UInt8], value: [ClientIdentifier: RecentSyncFile])?

  /// The value of bytes, decoded unless they are those of the last time.
  func value(
    of bytes: [UInt8], _ decode: () throws -> [ClientIdentifier: RecentSyncFile]
  ) throws -> [ClientIdentifier: RecentSyncFile] {
    let known = lock.withLock { last.flatMap { $0.bytes == bytes ? $0.value : nil } }
    if let known { return known }
    let value = try decode()
    lock.withLock { last = (bytes, value) }
    return value
  }
}
