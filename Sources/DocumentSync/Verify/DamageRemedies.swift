import SyncDirectory
import SyncModel

/// Sets the remedies for damaged and missing files. They depend on the author
/// of a file and on the devices that need it: an author that is gone restores
/// nothing, and a file that no device reads any more does no harm.
struct DamageRemedies {
  /// The kind of a file, and its author.
  private enum Place {
    case application
    case generation
    case tombstone
    case description(ClientIdentifier)
    case removal
    case marker(ClientIdentifier, IntegrityKey)
    case changes(ClientIdentifier, ClosedRange<UInt64>, IntegrityKey)
    case command(ClientIdentifier, UInt64, IntegrityKey)
    case wholeStore(IntegrityKey)
  }

  private static let damage: Set<VerifyReport.Finding.Kind> = [
    .damaged, .misnamed, .truncated, .wrongType, .misplaced, .malformed,
  ]
  private static let missing: Set<VerifyReport.Finding.Kind> = [
    .changeSetMissing, .commandMissing, .markerAhead, .markerWithoutFiles,
  ]

  let inventory: DirectoryInventory
  let generations: [IntegrityKey: GenerationFacts]

  /// Returns the findings with better remedies.
  func amended(_ findings: [VerifyReport.Finding]) -> [VerifyReport.Finding] {
    guard findings.contains(where: { isConcerned($0.kind) }) else { return findings }
    let places = self.places()
    return findings.map { finding in
      guard isConcerned(finding.kind), let path = finding.path else { return finding }
      var finding = finding
      if Self.missing.contains(finding.kind) {
        guard let (client, key) = missingAuthor(at: path, places[path]) else { return finding }
        amendMissing(&finding, of: client, key)
      } else if let place = places[path] {
        let usual = finding.remedy
        amend(&finding, at: place, path)
        // A truncated file may still arrive, if a device needs it.
        if finding.kind == .truncated, finding.severity != .note, finding.remedy != usual {
          finding.remedy = "\(Self.arrival) If it has: \(finding.remedy)"
        }
      }
      return finding
    }
  }

  private func isConcerned(_ kind: VerifyReport.Finding.Kind) -> Bool {
    Self.damage.contains(kind) || Self.missing.contains(kind)
  }

  private func places() -> [String: Place] {
    var places: [String: Place] = [:]
    for name in inventory.applications {
      places[DirectoryLayout.path(of: name).description] = .application
    }
    for name in inventory.clientDevices {
      places[DirectoryLayout.path(of: name).description] = .description(name.client)
    }
    for name in inventory.clientRemovals {
      places[DirectoryLayout.path(of: name).description] = .removal
    }
    for (name, document) in inventory.documents {
      let layout = DirectoryLayout.Document(name)
      for name in document.generations {
        places[layout.path(of: name).description] = .generation
      }
      for name in document.deleted { places[layout.path(of: name).description] = .tombstone }
      for (key, life) in document.lives { add(life, layout.generation(key), to: &places) }
    }
    return places
  }

  private func add(
    _ life: DirectoryInventory.Life, _ layout: DirectoryLayout.Generation,
    to places: inout [String: Place]
  ) {
    for name in life.markers {
      places[layout.path(of: name).description] = .marker(name.client, layout.key)
    }
    for (client, names) in life.changes {
      for name in names {
        places[layout.path(of: name, by: client).description] =
          .changes(client, name.numbers, layout.key)
      }
    }
    for (client, names) in life.commands {
      for name in names {
        places[layout.path(of: name, by: client).description] =
          .command(client, name.number, layout.key)
      }
    }
    for (client, names) in life.wholeStores {
      for name in names {
        places[layout.path(of: name, by: client).description] = .wholeStore(layout.key)
      }
    }
  }

  // MARK: - Damaged files

  private static let arrival = "Wait until the shared directory has brought the rest of it."
  private static let anyMember: Remedy =
    "let any device that has the document run \(elsewhere: .synchronizeThoroughly), which writes it again"
  private static let isGone = "Its author has left the document or is retired"
  private static let byReset: Remedy =
    "\(isGone): restore the file from another device's copy of the directory, or run \(elsewhere: .reset) "
    + "on a device that has everything."

  private func amend(_ finding: inout VerifyReport.Finding, at place: Place, _ path: String) {
    switch place {
    case .application, .generation:
      if finding.kind == .wrongType || finding.kind == .misplaced {
        finding.remedy = "Move the file out of the shared directory, then \(Self.anyMember)."
      } else {
        mend(&finding, by: Self.anyMember)
      }
    case .tombstone:
      setHarmless(
        &finding, "You need not do anything: only who deleted the document, and when, is lost.")
    case .description(let client):
      guard isGone(client) else {
        guard finding.kind == .malformed else { return }
        return mend(
          &finding,
          by: "let its device run \(elsewhere: .synchronizeThoroughly), which writes it again")
      }
      setHarmless(
        &finding, "You need not do anything: its device is gone, and only its name is lost.")
    case .removal:
      mend(
        &finding,
        by: "remove the file, and run \(.removeClient) again, which records again who was "
          + "removed; only lists of devices go by it")
    case .marker(let client, let key):
      if isFormer(key, &finding) { return }
      guard isGone(client, in: key) else { return }
      setHarmless(&finding, "You need not do anything: no device waits for its author any more.")
    case .changes(let client, let numbers, let key):
      if isFormer(key, &finding) { return }
      amend(&finding, of: client, numbers, key, path)
    case .command(let client, let number, let key):
      if isFormer(key, &finding) { return }
      guard let facts = generations[key] else { return }
      if isIntact(number, in: facts.commands[client], besides: path) {
        finding.remedy = Self.byHand("command \(number)")
      } else if isGone(client, in: key) {
        amend(
          &finding,
          isLacking: members(facts).contains {
            $0.commandsApplied.number(of: client) < number
          }, isContained: facts.wholeStores.contains { $0.commands.number(of: client) >= number })
      }
    case .wholeStore(let key):
      if isFormer(key, &finding) { return }
      // If the author is still a member, it uploads a replacement itself.
      mend(
        &finding,
        by: "run \(elsewhere: .upload) on a device that has the document, then remove the file"
      )
    }
  }

  /// Sets the remedy for a damaged file whose finding has only the usual one.
  private func mend(_ finding: inout VerifyReport.Finding, by remedy: Remedy) {
    guard finding.remedy == finding.kind.remedy else { return }
    finding.remedy = "To mend it, \(remedy)."
  }

  private func amend(
    _ finding: inout VerifyReport.Finding, of client: ClientIdentifier,
    _ numbers: ClosedRange<UInt64>,
    _ key: IntegrityKey, _ path: String
  ) {
    guard let facts = generations[key] else { return }
    if numbers.allSatisfy({ isIntact($0, in: facts.changes[client], besides: path) }) {
      finding.remedy = Self.byHand(
        numbers.count == 1
          ? "change set \(numbers.lowerBound)" : "each of its change sets")
    } else if isGone(client, in: key) {
      let last = min(numbers.upperBound, cut(of: client, facts) ?? .max)
      amend(
        &finding,
        isLacking: numbers.lowerBound <= last
          && members(facts).contains { $0.applied.number(of: client) < last },
        isContained: numbers.lowerBound > last || facts.contained(of: client) >= last)
    }
  }

  /// - Parameters:
  ///   - isLacking: Whether a member does not have the content of the file.
  ///   - isContained: Whether a whole store contains it.
  private func amend(_ finding: inout VerifyReport.Finding, isLacking: Bool, isContained: Bool) {
    if isLacking {
      finding.remedy = Self.byReset
    } else if isContained {
      setHarmless(&finding, "You need not do anything: every device has what was in it.")
    } else {
      finding.remedy =
        "Run \(elsewhere: .upload) on a device that has the document, so that others can join without "
        + "the file: every device has what was in it."
    }
  }

  /// Makes a finding a note: no device needs the file.
  private func setHarmless(_ finding: inout VerifyReport.Finding, _ remedy: Remedy) {
    finding.severity = .note
    finding.remedy = remedy
  }

  private static func byHand(_ what: String) -> Remedy {
    "Remove the file by hand: \(what) is there in another file, which is whole."
  }

  /// Whether a generation no longer counts; then the finding becomes a note.
  private func isFormer(_ key: IntegrityKey, _ finding: inout VerifyReport.Finding) -> Bool {
    let document = inventory.documents.values.first { $0.lives[key] != nil }
    guard let document, document.isDeleted(key) || (document.counting?.key ?? key) != key else {
      return false
    }
    setHarmless(
      &finding,
      "You need not do anything: the document was deleted or begun again since, and no device reads "
        + "the file.")
    return true
  }

  // MARK: - Missing files

  /// Returns the author of a missing file, by the folder in which the file
  /// should be, or by the marker that announces it.
  private func missingAuthor(
    at path: String, _ place: Place?
  ) -> (ClientIdentifier, IntegrityKey)? {
    if case .marker(let client, let key) = place { return (client, key) }
    // The path is that of a client's folder, or of a file in such a folder.
    guard let path = RelativePath(path) else { return nil }
    for folder in [path, path.parent] {
      guard let folder, let client = ClientIdentifier(folder.name) else { continue }
      for (key, facts) in generations
      where [facts.layout.syncChanges(of: client), facts.layout.syncCommands(of: client)]
        .contains(folder)
      {
        return (client, key)
      }
    }
    return nil
  }

  private func amendMissing(
    _ finding: inout VerifyReport.Finding, of client: ClientIdentifier, _ key: IntegrityKey
  ) {
    guard let facts = generations[key], isGone(client, in: key) else { return }
    let head = min(facts.head(of: client), cut(of: client, facts) ?? .max)
    let commandHead = facts.commandHead(of: client)
    amend(
      &finding,
      isLacking: members(facts).contains {
        $0.applied.number(of: client) < head || $0.commandsApplied.number(of: client) < commandHead
      }, isContained: facts.contained(of: client) >= head)
    guard finding.severity != .note else { return }
    finding.remedy = "Wait until the shared directory has arrived. If it has: \(finding.remedy)"
  }

  // MARK: - Retired clients

  private func isGone(_ client: ClientIdentifier, in key: IntegrityKey) -> Bool {
    generations[key]?.gone.contains(client) ?? false
  }

  /// Whether a client is gone from every generation that knows it.
  private func isGone(_ client: ClientIdentifier) -> Bool {
    let known = generations.filter { _, facts in
      facts.markers[client] != nil || facts.gone.contains(client)
    }
    return !known.isEmpty && known.keys.allSatisfy { isGone(client, in: $0) }
  }

  private func cut(of client: ClientIdentifier, _ facts: GenerationFacts) -> UInt64? {
    facts.cuts[client]
  }

  private func members(_ facts: GenerationFacts) -> some Sequence<RecentSyncFile> {
    facts.markers.lazy.filter { !facts.gone.contains($0.key) }.map(\.value.file)
  }

  private func isIntact(
    _ number: UInt64, in facts: NumberedFacts?, besides path: String
  ) -> Bool {
    facts?.claims[number]?.contains { $0.hash != nil && $0.path.description != path } ?? false
  }
}
