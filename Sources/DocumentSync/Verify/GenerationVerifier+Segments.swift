import SyncDirectory
import SyncModel

extension GenerationVerifier {
  /// Reads a segment, and each change set in it.
  func read(
    _ name: SegmentName, at path: RelativePath, by client: ClientIdentifier,
    _ facts: inout GenerationFacts
  ) throws -> [(UInt64, NumberedFacts.Claim)] {
    // One that cannot be read may hold each of its numbers.
    func unread() -> [(UInt64, NumberedFacts.Claim)] {
      name.numbers.prefix(SegmentCodec.greatestCount).map {
        ($0, NumberedFacts.Claim(path: path, isInSegment: true))
      }
    }
    let whole = try files.read(path, name.hash, limits: .default, malformed: .segmentIndex) {
      try SegmentCodec.decode($0)
    }
    guard let segment = whole?.content else { return unread() }
    guard
      facts.owns(
        root: segment.root, document: segment.document, generation: segment.generation),
      segment.client == client, segment.first...segment.last == name.numbers
    else {
      files.note(
        .misplaced, path, "The segment belongs to another document, client or numbers.",
        detail: "root \(segment.root), document \(segment.document), generation "
          + "\(segment.generation), client \(segment.client), numbers \(segment.first) to "
          + "\(segment.last)")
      return unread()
    }
    return try zip(name.numbers, segment.parts).map { number, part in
      try files.context.checkCancellation()
      var claim = NumberedFacts.Claim(path: path)
      do {
        claim = note(
          try ChangeSetCodec.decode(part.bytes), hash: part.hash, as: number, at: path,
          by: client, &facts)
      } catch let error as CodecError {
        var finding = files.finding(error, path, isAsWritten: true)
        finding.detail = "change set \(number): \(finding.detail ?? "")"
        files.note(finding)
      }
      claim.isInSegment = true
      return (number, claim)
    }
  }

  /// Notes segments that are of no use: those whose numbers were given up,
  /// and those that overlap.
  func checkSegments(_ facts: GenerationFacts) {
    for (client, listed) in names.changes {
      let segments = listed.compactMap { name in
        if case .segment(let name) = name { name } else { nil }
      }.sorted { ($0.numbers.lowerBound, $0.description) < ($1.numbers.lowerBound, $1.description) }
      let lowest = facts.lowestKept(of: client)
      for (index, name) in segments.enumerated() {
        let path = facts.layout.path(of: name, by: client)
        if name.numbers.upperBound < lowest {
          files.note(
            .changeSetNotCleared, path,
            "A segment is still there, and all of it was given up.",
            detail: "the least that is kept is \(lowest)")
        }
        for other in segments[..<index]
        where other.numbers.overlaps(name.numbers)
          && other.numbers.upperBound < name.numbers.upperBound
          && other.numbers.lowerBound < name.numbers.lowerBound
        {
          files.note(
            .segmentOverlap, path, "Two segments hold some of the same change sets.",
            detail: other.description)
        }
      }
    }
  }
}
