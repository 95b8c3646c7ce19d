import SyncModel
import Synchronization

/// The decoded content of the markers that were read: decoding takes long if
/// they contain much, and one synchronization asks for it several times.
final class DecodedMarkers: Sendable {
  private let last = Mutex<(bytes: [UInt8], value: [ClientIdentifier: RecentSyncFile])?>(nil)

  /// The value of bytes, decoded unless they are those of the last time.
  func value(
    of bytes: [UInt8], _ decode: () throws -> [ClientIdentifier: RecentSyncFile]
  ) throws -> [ClientIdentifier: RecentSyncFile] {
    let known = last.withLock { $0.flatMap { $0.bytes == bytes ? $0.value : nil } }
    if let known { return known }
    let value = try decode()
    last.withLock { $0 = (bytes, value) }
    return value
  }
}
