import Foundation
import SyncModel

/// Writes and reads the `.store` files of the shared directory: envelopes whose
/// private header is a ``WholeStoreHeader`` in JSON, and whose body is the
/// compressed database. The memory in use is constant, whatever the length of
/// the database.
struct WholeStoreFile {
  /// A file that was checked and is intact.
  struct Checked {
    var header: WholeStoreHeader
    var hash: ContentHash
    var envelope: StreamedEnvelope
    var byteCount: Int

    /// The entry for a marker.
    var found: RecentSyncFile.WholeStore {
      RecentSyncFile.WholeStore(
        client: header.client, number: header.number, hash: hash, vector: header.vector,
        commands: header.commands, byteCount: byteCount)
    }
  }

  private static let chunkByteCount = 1 << 20
  private static let limits = CodecLimits.default

  let context: OperationContext

  init(_ context: OperationContext) { self.context = context }

  /// Writes the database at `database` to a new file at `path`. Sets its length
  /// and hash in `header`.
  func write(
    _ database: String, header: WholeStoreHeader, to path: String
  ) throws -> Checked {
    var header = header
    let input = try LocalFileHandle(reading: database, operation: context.verb)
    context.begin(.compressing, count: 1, bytes: try input.byteCount())
    var hasher = ContentHasher()
    header.storeByteCount = 0
    try input.forEachChunk(of: Self.chunkByteCount) { chunk in
      try context.checkCancellation()
      hasher.update(chunk)
      header.storeByteCount += chunk.count
    }
    header.storeHash = hasher.hash

    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var envelope = StreamedEnvelope(
      type: .wholeStore, privateHeader: Array(try encoder.encode(header)), isCompressed: true,
      storedByteCount: 0, bodyByteCount: header.storeByteCount)
    let output = try LocalFileHandle(creating: path, operation: context.verb)
    try output.write(envelope.encodedHead())
    let zlib = try ZlibStream(.deflate)
    func push(_ chunk: [UInt8], isLast: Bool) throws {
      try zlib.push(chunk, isLast: isLast) { part in
        envelope.storedByteCount += part.count
        try output.write(Array(part))
      }
    }
    try input.seek(to: 0)
    try input.forEachChunk(of: Self.chunkByteCount) { chunk in
      try context.checkCancellation()
      try push(chunk, isLast: false)
      context.report { $0.completedBytes += chunk.count }
    }
    try push([], isLast: true)
    // The lengths are known now; the new head is as long as the old one.
    try output.seek(to: 0)
    try output.write(envelope.encodedHead())

    var whole = ContentHasher()
    try output.seek(to: 0)
    try output.forEachChunk(of: Self.chunkByteCount) { chunk in
      try context.checkCancellation()
      whole.update(chunk)
    }
    let trailer = StreamedEnvelope.trailer(for: whole.hash)
    try output.write(trailer)
    whole.update(trailer)
    context.endPhase()
    return Checked(
      header: header, hash: whole.hash, envelope: envelope,
      byteCount: envelope.headByteCount + envelope.storedByteCount + trailer.count)
  }

  /// Checks the hashes, the lengths and the header of the file at `path`.
  /// Throws ``CodecError`` if the file is not intact.
  func check(_ path: String) throws -> Checked {
    let input = try LocalFileHandle(reading: path, operation: context.verb)
    let byteCount = try input.byteCount()
    context.begin(.verifying, count: 1, bytes: byteCount)
    let fixed = try input.read(StreamedEnvelope.fixedByteCount)
    let headByteCount = try StreamedEnvelope.headByteCount(fixedPart: fixed, limits: Self.limits)
    guard try byteCount >= StreamedEnvelope.leastByteCount(fixedPart: fixed, limits: Self.limits)
    else { throw CodecError(.truncated, "whole store", at: byteCount) }
    try input.seek(to: 0)
    let head = try input.read(headByteCount)
    let trailerByteCount = StreamedEnvelope.trailerByteCount
    guard head.count == headByteCount, byteCount >= headByteCount + trailerByteCount else {
      throw CodecError(.truncated, "whole store", at: byteCount)
    }
    try input.seek(to: 0)
    var hasher = ContentHasher()
    var left = byteCount - trailerByteCount
    while left > 0 {
      try context.checkCancellation()
      let chunk = try input.read(min(left, Self.chunkByteCount))
      guard !chunk.isEmpty else {
        throw CodecError(.truncated, "whole store", at: byteCount - left)
      }
      hasher.update(chunk)
      left -= chunk.count
      context.report { $0.completedBytes += chunk.count }
    }
    let trailer = try input.read(trailerByteCount)
    guard trailer == StreamedEnvelope.trailer(for: hasher.hash) else {
      throw CodecError(.badChecksum, "SHA-256", at: byteCount - trailerByteCount)
    }
    hasher.update(trailer)
    let envelope = try StreamedEnvelope(
      head: head, fileByteCount: byteCount, expecting: .wholeStore)
    guard envelope.headByteCount + envelope.storedByteCount + trailerByteCount == byteCount else {
      throw CodecError(.wrongCount, "length of the whole store")
    }
    let header: WholeStoreHeader
    do {
      header = try JSONDecoder().decode(
        WholeStoreHeader.self, from: Data(envelope.privateHeader))
    } catch {
      throw CodecError(.malformed, "header of the whole store: \(error)")
    }
    guard header.storeByteCount == envelope.bodyByteCount else {
      throw CodecError(.wrongCount, "length of the database")
    }
    context.endPhase()
    return Checked(header: header, hash: hasher.hash, envelope: envelope, byteCount: byteCount)
  }

  /// Writes the database of a checked file to a new file.
  ///
  /// The new file has the permissions of `store`, if there is one; otherwise,
  /// only this user may read it. The function never writes more bytes than the
  /// header announces. Throws ``CodecError`` if the result is not what the
  /// header announces.
  func expand(_ checked: Checked, at path: String, to database: String, like store: String? = nil)
    throws
  {
    let input = try LocalFileHandle(reading: path, operation: context.verb)
    let output = try LocalFileHandle(creating: database, like: store, operation: context.verb)
    try input.seek(to: checked.envelope.headByteCount)
    let limit = checked.header.storeByteCount
    let zlib = try ZlibStream(.inflate(limit: limit))
    var hasher = ContentHasher()
    var written = 0
    var left = checked.envelope.storedByteCount
    context.begin(.verifying, count: 1, bytes: limit)
    while left > 0 {
      try context.checkCancellation()
      let chunk = try input.read(min(left, Self.chunkByteCount))
      guard !chunk.isEmpty else { throw CodecError(.truncated, "whole store") }
      left -= chunk.count
      let parts = checked.envelope.isCompressed
      func emit(_ part: ArraySlice<UInt8>) throws {
        hasher.update(part)
        written += part.count
        try output.write(Array(part))
      }
      if parts { try zlib.push(chunk, isLast: left == 0, emit: emit) } else { try emit(chunk[...]) }
      context.report { $0.completedBytes = written }
    }
    guard written == limit, hasher.hash == checked.header.storeHash,
      zlib.isAtEnd || !checked.envelope.isCompressed
    else { throw CodecError(.badCompression, "the database in the whole store") }
    try output.flush()
    context.endPhase()
  }
}
