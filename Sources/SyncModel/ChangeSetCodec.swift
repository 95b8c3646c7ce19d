/// Change sets as bytes, by the format in `Documentation/ChangeSetFormat.md`.
///
/// Equal change sets give equal bytes, until the compression library or this version's choice of
/// encodings changes. Encoding puts the content of value columns in order and drops unused content,
/// so that a decoded change set equals the encoded one if its columns were built by appending.
package enum ChangeSetCodec {
  /// Encodes a change set as the bytes of its file.
  ///
  /// Throws ``CodecError`` if the change set breaks a rule that ``decode(_:limits:)`` checks, so
  /// that every written file can be read.
  package static func encode(
    _ set: SyncChangeSet, limits: CodecLimits = .default
  ) throws -> [UInt8] {
    try check(set, limits: limits)
    let memory = set.tables.reduce(0) { $0 + $1.byteCount }
    guard memory <= limits.memoryBytes / 2 else {
      throw CodecError(.lengthOverCap, "changes of \(memory) bytes")
    }
    let lanes = encodeTables(set.tables)
    guard lanes.byteCount <= limits.bodyBytes else {
      throw CodecError(.lengthOverCap, "body of \(lanes.byteCount) bytes")
    }
    var privateHeader = encodePrivateHeader(set)
    var body: [UInt8] = []
    for (lane, bytes) in zip(
      Lane.allCases, [lanes.structure, lanes.text, lanes.symbols, lanes.raw])
    {
      let deflated =
        lane == .raw
        ? nil
        : try bytes.withUnsafeBytes {
          try Deflate.deflateIfSmaller($0, effort: lane.effort(count: bytes.count))
        }
      privateHeader.append(deflated == nil ? 0 : 1)
      privateHeader.append(varint: bytes.count)
      if let deflated { privateHeader.append(varint: deflated.count) }
      body += deflated ?? bytes
    }
    let values = set.tables.reduce(0) { $0 + $1.valueCount }
    guard values <= limits.values(inBytes: body.count) else {
      throw CodecError(.lengthOverCap, "\(values) rows and cells")
    }
    return try Envelope(
      type: .changeSet, publicHeader: encode(set.header), privateHeader: privateHeader, body: body,
      compression: .stored
    ).encoded(limits: limits)
  }

  /// Decodes the bytes of a file.
  ///
  /// Checks everything before it uses it. Calls `checkCancellation` repeatedly; throws its errors
  /// and ``CodecError``.
  package static func decode(
    _ bytes: [UInt8], limits: CodecLimits = .default,
    checkCancellation: @escaping () throws -> Void = {}
  ) throws -> SyncChangeSet {
    let (header, details, tables) = try bytes.withUnsafeBytes { bytes in
      let (header, details, body) = try decodeHeaders(bytes, limits: limits)
      return (
        header, details,
        try decodeTables(
          body, details: details, limits: limits, checkCancellation: checkCancellation)
      )
    }
    let set = SyncChangeSet(
      header: header, dependencies: details.dependencies, schema: details.schema, tables: tables)
    guard set.rowCount == details.rows else {
      throw CodecError(
        .wrongCount, "private header: \(details.rows) rows; there are \(set.rowCount)")
    }
    guard set.timeRange == details.timeRange else {
      throw CodecError(.wrongCount, "private header: range of times")
    }
    try check(set, limits: limits)
    return set
  }

  /// The content of a change set's headers.
  package struct Summary: Hashable, Sendable {
    /// The document, author and number of the change set.
    package var header: SyncChangeSet.Header
    /// The change sets of other clients that its author had applied.
    package var dependencies: VersionVector
    /// The number of changed rows.
    package var rowCount: Int
  }

  /// Reads a change set's headers without taking memory for its changes.
  ///
  /// It needs the whole file, since it checks the hash. Throws ``CodecError``.
  package static func summary(
    _ bytes: [UInt8], limits: CodecLimits = .default
  ) throws -> Summary {
    try bytes.withUnsafeBytes { bytes in
      let (header, details, _) = try decodeHeaders(bytes, limits: limits)
      return Summary(header: header, dependencies: details.dependencies, rowCount: details.rows)
    }
  }

  private static func decodeHeaders(
    _ bytes: UnsafeRawBufferPointer, limits: CodecLimits
  ) throws -> (SyncChangeSet.Header, Details, body: UnsafeRawBufferPointer) {
    let parts = try Envelope.parts(of: bytes, expecting: .changeSet, limits: limits)
    guard parts.envelope.compression == .stored else {
      throw CodecError(.malformed, "the body of a change set is compressed", at: 12)
    }
    let header = try decodeHeader(parts.envelope)
    let details = try parts.envelope.privateHeader.withUnsafeBytes {
      try decodePrivateHeader($0, limits: limits)
    }
    return (header, details, parts.stored)
  }

  /// Reads a change set's header without its changes.
  ///
  /// It needs the whole file, since it checks the hash.
  package static func decodeHeader(
    _ bytes: [UInt8], limits: CodecLimits = .default
  ) throws -> SyncChangeSet.Header {
    try bytes.withUnsafeBytes {
      try decodeHeader(Envelope.parts(of: $0, expecting: .changeSet, limits: limits).envelope)
    }
  }
}
