import SyncDirectory
import SyncModel

extension GenerationVerifier {
  /// Reads a segment, and each change set in it.
  func read(
    _ name: SegmentName, at path: RelativePath, by client: ClientIdentifier,
    _ facts: inout GenerationFacts
  ) throws -> [(UInt64, NumberedFacts.Claim)] {
    // A segment that cannot be read may contain each of its numbers.
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

  /// Notes missing segments that a marker lists, unless their author has
  /// dropped them: it has vacuumed them, a larger one contains them, or, if it
  /// does not list them itself, other files contain their change sets.
  func checkListedSegments(_ facts: inout GenerationFacts) {
    var missing: [RecentSyncFile.Segment: GenerationFacts.Marker] = [:]
    for (_, marker) in facts.markers.sorted(by: { $0.key < $1.key }) {
      for segment in marker.file.segments where missing[segment] == nil {
        if isMissing(segment, listedBy: marker, facts) { missing[segment] = marker }
      }
    }
    for (segment, marker) in missing {
      files.note(
        .markerSegmentMissing, facts.layout.path(of: segment.name, by: segment.client),
        "The segment of change sets \(segment.first) to \(segment.last) is not there.",
        detail: "listed by \(marker.path.name)")
      facts.changes[segment.client, default: NumberedFacts()].inMissingSegments.append(
        segment.first...segment.last)
    }
  }

  private func isMissing(
    _ segment: RecentSyncFile.Segment, listedBy marker: GenerationFacts.Marker,
    _ facts: GenerationFacts
  ) -> Bool {
    let lowest = facts.lowestKept(of: segment.client)
    guard segment.first <= segment.last, segment.last >= lowest else { return false }
    let numbers = segment.first...segment.last
    for case .segment(let name) in names.changes[segment.client] ?? []
    where name == segment.name || name.numbers.contains(numbers) {
      return false
    }
    if marker.file.client == segment.client { return true }
    let found = facts.changes[segment.client] ?? NumberedFacts()
    return found.claims.keys.count { numbers.contains($0) && $0 >= lowest }
      < segment.last - max(segment.first, lowest) + 1
  }

  /// The most segments before a segment that are compared with it.
  private static let nearSegments = 256

  /// Notes useless segments: those whose numbers were vacuumed, and those that
  /// overlap.
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
            "A segment is still there, although all of its change sets were given up.",
            detail: "the least that is kept is \(lowest)")
        }
        // One overlap is enough; if many segments overlap, one of them is near.
        let other = segments[..<index].suffix(Self.nearSegments).last { other in
          other.numbers.overlaps(name.numbers)
            && other.numbers.upperBound < name.numbers.upperBound
            && other.numbers.lowerBound < name.numbers.lowerBound
        }
        guard let other else { continue }
        files.note(
          .segmentOverlap, path, "Two segments overlap.",
          detail: other.description)
      }
    }
  }
}
