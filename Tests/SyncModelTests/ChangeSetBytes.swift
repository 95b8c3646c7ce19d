@testable import SyncModel

/// Changes bytes of files so that the hash at the end is right again.
enum ChangeSetBytes {
  /// Puts a new hash over everything before it.
  static func rehashed(_ bytes: [UInt8]) -> [UInt8] {
    let content = Array(bytes.dropLast(36))
    return content + ContentHash(of: content).bytes + [0, 0, 0, 0]
  }

  static func replacing(_ bytes: [UInt8], at offset: Int, with new: [UInt8]) -> [UInt8] {
    var bytes = bytes
    bytes.replaceSubrange(offset..<offset + new.count, with: new)
    return rehashed(bytes)
  }

  /// The same change set with all lanes uncompressed, so that changing a byte
  /// reaches the parser and not only zlib.
  static func stored(_ bytes: [UInt8]) throws -> Envelope {
    var envelope = try Envelope.decode(bytes)
    let details = try envelope.privateHeader.withUnsafeBytes {
      try ChangeSetCodec.decodePrivateHeader($0, limits: .default)
    }
    let directory = details.lanes.reduce(0) { sum, lane in
      var entry: [UInt8] = [0]
      entry.append(varint: lane.count)
      if lane.isDeflated { entry.append(varint: lane.stored) }
      return sum + entry.count
    }
    envelope.privateHeader.removeLast(directory)
    var body: [UInt8] = []
    var start = 0
    for lane in details.lanes {
      let part = envelope.body[start..<start + lane.stored]
      start += lane.stored
      body +=
        lane.isDeflated
        ? try Array(part).withUnsafeBytes {
          try Deflate.inflate($0, count: lane.count, what: "lane")
        } : Array(part)
      envelope.privateHeader.append(0)
      envelope.privateHeader.append(varint: lane.count)
    }
    envelope.body = body
    return envelope
  }
}
