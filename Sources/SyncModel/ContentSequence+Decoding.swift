/// Decoded byte strings.
struct DecodedContents {
  /// For each string its offset in ``bytes`` in the upper 32 bits and its length in the lower 32.
  var spans: [UInt64] = []
  var bytes: [UInt8] = []
}

extension LaneReader {
  /// Reads `count` byte strings.
  func contents(_ count: Int, nested: Bool = false) throws -> DecodedContents {
    guard count > 0 else { return DecodedContents() }
    try checkCancellation()
    let offset = structure.offset
    guard let mode = ContentMode(rawValue: try structure.byte()) else {
      throw CodecError(.malformed, "structure: content mode", at: offset)
    }
    switch mode {
    case .plain: return try plainContents(count)
    case .fixed: return try fixedContents(count)
    case .front: return try frontContents(count)
    case .dictionary:
      guard !nested else {
        throw CodecError(.malformed, "structure: dictionary of dictionaries", at: offset)
      }
      return try dictionaryContents(count)
    }
  }

  private func plainContents(_ count: Int) throws -> DecodedContents {
    var (spans, total) = try lengths(count)
    let source = try take(total, from: lane())
    try charge(total)
    Self.place(&spans)
    return DecodedContents(spans: spans, bytes: Array(source))
  }

  /// Reads lengths and adds them up; throws if the sum does not fit in 31 bits.
  private func lengths(_ count: Int) throws -> (lengths: [UInt64], total: Int) {
    let offset = structure.offset
    let lengths = try integers(count)
    var total: UInt64 = 0
    var greatest: UInt64 = 0
    for length in lengths {
      total &+= length
      greatest |= length
    }
    // There are fewer than 2³² lengths, so that the sum of lengths below 2³¹ cannot wrap.
    guard greatest < 1 << 31, total < 1 << 31 else {
      throw CodecError(.lengthOverCap, "structure: lengths of contents", at: offset)
    }
    return (lengths, Int(total))
  }

  /// Replaces lengths with spans.
  private static func place(_ lengths: inout [UInt64]) {
    var offset: UInt64 = 0
    lengths.withUnsafeMutableBufferPointer { lengths in
      for index in lengths.indices {
        let length = lengths[index]
        lengths[index] = offset << 32 | length
        offset &+= length
      }
    }
  }

  private func fixedContents(_ count: Int) throws -> DecodedContents {
    let offset = structure.offset
    let transform = ContentTransform(rawValue: try structure.byte())
    let width = Int(try structure.byte())
    let isIdentifier = !transform.isDisjoint(with: [.uuid, .uuidIdentity])
    guard ContentTransform.known.isSuperset(of: transform), width > 0,
      !transform.isSuperset(of: [.uuid, .uuidIdentity]),
      !isIdentifier || width == 16, !transform.contains(.ascending) || width >= 8
    else { throw CodecError(.malformed, "structure: contents of fixed width", at: offset) }
    let prefix = transform.contains(.uuidIdentity) ? UUIDText.identityPrefix : []
    let length = isIdentifier ? UUIDText.length + prefix.count : width
    try charge(count, each: width + length + 8)
    let planes = try planes(width: width, count: count)

    var rows = [UInt8](unsafeUninitializedCapacity: width * count) { output, initialized in
      for (column, plane) in planes.enumerated() {
        var target = column
        for index in 0..<count {
          output[target] = plane[index]
          target &+= width
        }
      }
      initialized = width * count
    }
    if transform.contains(.ascending) {
      rows.withUnsafeMutableBytes { Ascending.add($0, width: width) }
    }
    let spans = (0..<UInt64(count)).map { $0 &* UInt64(length) << 32 | UInt64(length) }
    guard isIdentifier else { return DecodedContents(spans: spans, bytes: rows) }
    let text = [UInt8](unsafeUninitializedCapacity: length * count) { output, initialized in
      rows.withUnsafeBytes {
        UUIDText.unpack($0, prefix: prefix, into: UnsafeMutableRawBufferPointer(output))
      }
      initialized = length * count
    }
    return DecodedContents(spans: spans, bytes: text)
  }

  private func frontContents(_ count: Int) throws -> DecodedContents {
    let offset = structure.offset
    let (shared, savedTotal) = try lengths(count)
    let (suffixes, suffixTotal) = try lengths(count)
    let source = try take(suffixTotal, from: lane())
    let total = savedTotal + suffixTotal
    guard total < 1 << 31 else {
      throw CodecError(.lengthOverCap, "structure: lengths of contents", at: offset)
    }
    try charge(total)
    try charge(count, each: 8)
    var result = DecodedContents()
    result.spans.reserveCapacity(count)
    var isMalformed = false
    result.bytes = [UInt8](unsafeUninitializedCapacity: total) { output, initialized in
      let target = UnsafeMutableRawBufferPointer(output)
      var position = 0
      var previous = 0..<0
      // This copies each byte once. Appending a part of an array to the array itself would copy the
      // whole array for every string.
      for index in 0..<count {
        let kept = Int(shared[index])
        guard kept <= previous.count else {
          isMalformed = true
          return
        }
        let rest = Int(suffixes[index])
        let start = initialized
        let shared = UnsafeRawBufferPointer(
          rebasing: UnsafeRawBufferPointer(target)[previous.lowerBound..<previous.lowerBound + kept]
        )
        UnsafeMutableRawBufferPointer(rebasing: target[start..<start + kept])
          .copyMemory(from: shared)
        UnsafeMutableRawBufferPointer(rebasing: target[start + kept..<start + kept + rest])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[position..<position + rest]))
        position += rest
        initialized = start + kept + rest
        previous = start..<initialized
        result.spans.append(UInt64(start) << 32 | UInt64(previous.count))
      }
    }
    guard !isMalformed else {
      throw CodecError(.malformed, "structure: shared beginning", at: offset)
    }
    return result
  }

  private func dictionaryContents(_ count: Int) throws -> DecodedContents {
    let size = try structure.count("distinct strings", cap: count)
    let distinct = try contents(size, nested: true)
    let offset = structure.offset
    var spans = try integers(count, below: UInt64(size), "index of a distinct string")
    var total = 0
    for index in spans {
      // There are fewer than 2³² lengths of at most 2³¹ each.
      total += Int(distinct.spans[Int(index)] & 0xFFFF_FFFF)
    }
    guard total < 1 << 31 else {
      throw CodecError(.lengthOverCap, "structure: lengths of contents", at: offset)
    }
    try charge(total)
    let bytes = [UInt8](unsafeUninitializedCapacity: total) { output, initialized in
      distinct.bytes.withUnsafeBytes { source in
        let target = UnsafeMutableRawBufferPointer(output)
        for position in spans.indices {
          let span = distinct.spans[Int(spans[position])]
          let start = Int(span >> 32)
          let length = Int(span & 0xFFFF_FFFF)
          UnsafeMutableRawBufferPointer(rebasing: target[initialized..<initialized + length])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[start..<start + length]))
          spans[position] = UInt64(initialized) << 32 | UInt64(length)
          initialized += length
        }
      }
    }
    return DecodedContents(spans: spans, bytes: bytes)
  }
}
