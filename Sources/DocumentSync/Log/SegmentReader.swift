import Foundation
import SyncDirectory
import SyncModel

/// Reads and checks segments, and caches the last few, since callers ask for
/// their change sets one by one.
final class SegmentReader: Sendable {
  /// About the most bytes of segments in the cache.
  private static let greatestByteCount = 32 << 20

  private struct Key: Hashable {
    var client: ClientIdentifier
    var name: SegmentName
  }

  private struct Entry {
    var segment: Segment
    var byteCount: Int
    var used: Int
  }

  private let files: SharedFiles
  private let header: SyncChangeSet.Header
  private let layout: DirectoryLayout.Generation
  private let lock = NSLock()
  nonisolated(unsafe) private var entries: [Key: Entry] = [:]
  nonisolated(unsafe) private var uses = 0
  /// The errors of damaged segments, which are not read again for each of their
  /// change sets.
  nonisolated(unsafe) private var failures: [Key: CodecError] = [:]

  /// - Parameter header: The fields that the headers of all files in the
  ///   generation share.
  init(_ files: SharedFiles, header: SyncChangeSet.Header, layout: DirectoryLayout.Generation) {
    self.files = files
    self.header = header
    self.layout = layout
  }

  /// Returns a change set of an intact segment. Throws ``CodecError`` if the
  /// segment is not intact or is in the wrong place, and the errors of reading.
  ///
  /// - Parameter limit: The most bytes that the segment's file may have.
  func part(
    _ number: UInt64, of name: SegmentName, by client: ClientIdentifier,
    limit: Int = CodecLimits.default.fileBytes
  ) throws -> Segment.Part {
    let key = Key(client: client, name: name)
    // One thread at a time: those that wait mostly want the same segment.
    return try lock.withLock {
      uses += 1
      entries[key]?.used = uses
      if let entry = entries[key] { return try Self.part(number, of: entry.segment) }
      if let failure = failures[key] { throw failure }
      let path = layout.path(of: name, by: client)
      let byteCount = try files.byteCount(of: path)
      guard byteCount <= limit else {
        throw CodecError(.lengthOverCap, "segment of \(byteCount) bytes")
      }
      makeRoom(for: byteCount)
      let found: (segment: Segment, hash: ContentHash, byteCount: Int)
      do {
        found = try read(name, by: client)
      } catch let error as CodecError {
        failures[key] = error
        throw error
      }
      entries[key] = Entry(segment: found.segment, byteCount: found.byteCount, used: uses)
      return try Self.part(number, of: found.segment)
    }
  }

  private static func part(_ number: UInt64, of segment: Segment) throws -> Segment.Part {
    guard let part = segment[number] else {
      throw CodecError(.wrongCount, "segment without change set \(number)")
    }
    return part
  }

  /// Removes the least recently used segments.
  private func makeRoom(for byteCount: Int) {
    while entries.values.reduce(byteCount, { $0 + $1.byteCount }) > Self.greatestByteCount,
      let oldest = entries.min(by: { $0.value.used < $1.value.used })?.key
    {
      entries[oldest] = nil
    }
  }

  /// Reads and checks a segment; returns it with the hash of its file.
  func read(
    _ name: SegmentName, by client: ClientIdentifier
  ) throws -> (segment: Segment, hash: ContentHash, byteCount: Int) {
    let bytes = try files.read(
      layout.path(of: name, by: client), limit: CodecLimits.default.fileBytes)
    let hash = ContentHash(of: bytes)
    guard name.hash.matches(hash) else {
      throw CodecError(.badChecksum, "hash in the name of the segment")
    }
    let segment = try SegmentCodec.decode(bytes)
    guard FileOrigin(segment) == FileOrigin(header, of: client),
      segment.first == name.numbers.lowerBound, segment.last == name.numbers.upperBound
    else { throw CodecError(.wrongType, "segment of another document, client or number") }
    return (segment, hash, bytes.count)
  }
}
