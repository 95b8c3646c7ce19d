import SyncDirectory
import SyncModel

/// The content of one client's numbered and chained files: its change sets or
/// its commands.
struct NumberedFacts {
  /// One file, or one part of a segment, that claims a number.
  struct Claim {
    var path: RelativePath
    /// The hash of its bytes; `nil` if the file could not be read.
    var hash: ContentHash?
    /// The hash of the file before it, which this one names.
    var previous: ContentHash?
    /// Whether it is part of a segment.
    var isInSegment = false
  }

  /// The files by number.
  var claims: [UInt64: [Claim]] = [:]
  /// The least number that its author has not vacuumed.
  var lowestKept: UInt64 = 1
  /// The numbers of missing segments that markers list; the missing segment is
  /// the finding.
  var inMissingSegments: [ClosedRange<UInt64>] = []

  /// The existing numbers, in order.
  var numbers: [UInt64] { claims.keys.sorted() }
  var greatest: UInt64 { claims.keys.max() ?? 0 }

  /// Returns the hashes of the files with a number; `nil` if there is none, or
  /// one of them could not be read, so that nothing is certain.
  func hashes(_ number: UInt64) -> [ContentHash]? {
    guard let claims = claims[number], !claims.isEmpty else { return nil }
    let hashes = claims.compactMap(\.hash)
    return hashes.count == claims.count ? hashes : nil
  }

  /// Whether a number exists, but with other content only.
  func differs(_ number: UInt64, from hash: ContentHash) -> Bool {
    hashes(number).map { !$0.contains(hash) } ?? false
  }

  /// Returns the missing numbers from ``lowestKept`` to `last`.
  func missing(upTo last: UInt64) -> [ClosedRange<UInt64>] {
    var ranges: [ClosedRange<UInt64>] = []
    var next = lowestKept
    for number in numbers where number >= lowestKept && number <= last {
      if number > next { ranges.append(next...(number - 1)) }
      next = number + 1
    }
    if next <= last { ranges.append(next...last) }
    return ranges
  }
}

/// Checks the numbers and the chain of one client's files.
struct NumberedRules {
  /// The noun and the kinds of findings for change sets or commands.
  struct Kinds {
    var noun: String
    var missing: VerifyReport.Finding.Kind
    var claimedTwice: VerifyReport.Finding.Kind
    var chainBroken: VerifyReport.Finding.Kind

    static let changeSets = Kinds(
      noun: "change set", missing: .changeSetMissing, claimedTwice: .changeSetClaimedTwice,
      chainBroken: .chainBroken)
    static let commands = Kinds(
      noun: "command", missing: .commandMissing, claimedTwice: .commandClaimedTwice,
      chainBroken: .commandChainBroken)
  }

  let kinds: Kinds
  let client: ClientIdentifier
  let facts: NumberedFacts
  let folder: RelativePath
  /// The path for the file with a number and a hash.
  let path: (UInt64, ContentHash) -> RelativePath

  /// Checks the files, and notes the findings.
  func run(_ files: VerifiedFiles) {
    for range in facts.missing(upTo: facts.greatest)
    where !facts.inMissingSegments.contains(where: { $0.contains(range) }) {
      noteMissing(range, files)
    }
    for number in facts.numbers { check(number, files) }
  }

  private func noteMissing(_ range: ClosedRange<UInt64>, _ files: VerifiedFiles) {
    // The following file names the missing one.
    let next = facts.claims[range.upperBound + 1]?.compactMap(\.previous).first
    let file = range.count == 1 ? next.map { path(range.upperBound, $0) } : nil
    let numbers =
      range.count == 1
      ? "\(kinds.noun.capitalizedFirst) \(range.lowerBound) is missing."
      : "The \(kinds.noun)s \(range.lowerBound) to \(range.upperBound) are missing."
    files.note(
      kinds.missing, file ?? folder, numbers,
      detail: "of client \(client); \(facts.greatest) is the last that is there")
  }

  private func check(_ number: UInt64, _ files: VerifiedFiles) {
    let claims = facts.claims[number] ?? []
    if Set(claims.compactMap(\.hash)).count > 1 { noteClaims(claims, of: number, files) }
    // Number 1 names a file of the ancestor, which was already checked.
    guard number > 1, let before = facts.hashes(number - 1) else { return }
    for claim in claims {
      guard claim.hash != nil, claim.previous.map({ !before.contains($0) }) ?? true else {
        continue
      }
      files.note(
        kinds.chainBroken, claim.path,
        "\(kinds.noun.capitalizedFirst) \(number) does not continue the one before it.",
        detail: "it names \(claim.previous?.nameFragment ?? "none"), there is "
          + before.map(\.nameFragment).joined(separator: ", "))
    }
  }
}

extension NumberedRules {
  /// Notes that one number has several contents. If a segment and loose files
  /// differ, the segment is wrong, since it was made of them.
  private func noteClaims(
    _ claims: [NumberedFacts.Claim], of number: UInt64, _ files: VerifiedFiles
  ) {
    let ordered = claims.sorted { $0.path < $1.path }
    let names = ordered.map(\.path.name).joined(separator: ", ")
    let segments = ordered.filter(\.isInSegment)
    guard !segments.isEmpty else {
      for claim in ordered.dropFirst() {
        files.note(
          kinds.claimedTwice, claim.path, "Two files claim \(kinds.noun) \(number).", detail: names)
      }
      return
    }
    for segment in segments.dropFirst(segments.count == claims.count ? 1 : 0) {
      files.note(
        .segmentDiffers, segment.path,
        "A segment and another file hold different contents of \(kinds.noun) \(number).",
        detail: names)
    }
  }
}

extension String {
  fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
