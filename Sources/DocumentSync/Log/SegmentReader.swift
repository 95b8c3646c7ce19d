import Foundation
import SyncDirectory
import SyncModel

/// Reads and checks segments, and keeps the last few in memory, since their
/// change sets are asked for one by one.
final class SegmentReader: Sendable {
  /// The most bytes of segments that are kept, about.
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
  /// The errors of damaged segments, which are not read again: each of their
  /// change sets would ask for them.
  nonisolated(unsafe) private var failures: [Key: CodecError] = [:]

  /// - Parameter header: What the headers of all files here have in common.
  init(_ files: SharedFiles, header: SyncChangeSet.Header, layout: DirectoryLayout.Generation) {
    self.files = files
    self.header = header
    self.layout = layout
  }

  /// A change set of a segment that is whole and belongs where it is. Throws
  /// ``CodecError`` if it is not, and what reading throws.
  ///
  /// - Parameter limit: The most bytes that its file may have.
  func part(
    _ number: UInt64, of name: SegmentName, by client: ClientIdentifier,
    limit: Int = CodecLimits.default.fileBytes
  ) throws -> Segment.Part {
    let key = Key(client: client, name: name)
    // One at a time: threads that wait mostly want the same segment.
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

  /// Forgets the segments that were used the longest time ago.
  private func makeRoom(for byteCount: Int) {
    while entries.values.reduce(byteCount, { $0 + $1.byteCount }) > Self.greatestByteCount,
      let oldest = entries.min(by: { $0.value.used < $1.value.used })?.key
    {
      entries[oldest] = nil
    }
  }

  /// Reads and checks a segment, with the hash of its file.
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
