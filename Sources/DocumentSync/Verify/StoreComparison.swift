import SyncDirectory
import SyncModel
import SyncStore

/// Compares a store's records of the shared directory with the directory.
struct StoreComparison {
  let store: StoreVerification
  let binding: StoreBinding
  let directory: DirectoryVerifier.Result

  private var layout: DirectoryLayout.Generation {
    DirectoryLayout.Document(binding.document).generation(binding.generation)
  }

  /// Returns the differences as findings.
  func run() -> [VerifyReport.Finding] {
    guard let facts = directory.generations[binding.generation], bindingFinding == nil else {
      return [bindingFinding].compactMap(\.self)
    }
    if let finding = retirementFinding(facts) { return [finding] + appliedFindings(facts) }
    return refusedFindings(facts) + ownFindings(facts) + commandFindings(facts)
      + markerFindings(facts)
      + appliedFindings(facts)
  }

  /// Returns the change sets in the directory that the store could not apply.
  private func refusedFindings(_ facts: GenerationFacts) -> [VerifyReport.Finding] {
    StoreRecords.refused(in: store.records).filter { wait in
      facts.changes[wait.client]?.claims[wait.number]?.contains {
        wait.path == nil || $0.path.description == wait.path || $0.isInSegment
      } ?? false
    }.map { wait in
      VerifyReport.Finding(
        .changeSetRefused, path: wait.path,
        "Change set \(wait.number) of \(wait.client) cannot be applied, and its author's later ones "
          + "wait for it.", detail: wait.message)
    }
  }

  // MARK: - Retired clients

  /// Returns the finding that this client is retired, by the store or by the
  /// directory; then no device restores its files, and none is missed.
  private func retirementFinding(_ facts: GenerationFacts) -> VerifyReport.Finding? {
    let client = binding.client
    let known = ownRetirements(facts)
    let isRetired =
      known.map { !$0.isEmpty }
      ?? facts.gone.contains(client)
    guard isRetired else { return nil }
    // The removal file is for lists only: the command counts.
    let isRemoved =
      known.map { $0.first?.reason == .removed } ?? directory.inventory.removed.contains(client)
    return VerifyReport.Finding(
      .storeRetired, path: layout.recentSyncs.description,
      isRemoved
        ? "This store's device was removed from the document."
        : "The other devices do not wait for this device any more: it is retired, or another copy "
          + "of the store has replaced it.",
      detail: "client \(client)",
      remedy: isRemoved
        ? "Go on as a new device with \(.synchronizeRejoining), or take the store out of sync with "
          + "\(.leaveAbandoning)."
        : nil)
  }

  /// Returns the retirements of this client that the store knows and that
  /// count; `nil` if the store knows of none.
  private func ownRetirements(_ facts: GenerationFacts) -> [CommandState.Retirement]? {
    guard let bytes = store.commandState else { return nil }
    do {
      let state = try CommandState.decoded(
        bytes, generation: binding.generation, client: binding.client)
      guard state.retirements.contains(where: { $0.client == binding.client }) else { return nil }
      var revisions = facts.markers.mapValues(\.file.revision)
      let own = StoreRecords.ownMarker(in: store.records)?.content.revision ?? 0
      revisions[binding.client] = max(revisions[binding.client] ?? 0, own)
      return Members.counting(state.retirements, revisions: revisions)[binding.client] ?? []
    } catch {
      // An unreadable state is a finding of its own.
      return nil
    }
  }

  /// Returns the least numbers of this client's files that were not vacuumed:
  /// from the store, which may be an older state of itself, and from the
  /// markers.
  private func lowestKept(_ facts: GenerationFacts) -> (changeSets: UInt64, commands: UInt64) {
    let own = StoreRecords.ownMarker(in: store.records)?.content
    let there = facts.markers[binding.client]?.file
    return (
      max(own?.lowestKept ?? 1, there?.lowestKept ?? 1),
      max(own?.lowestKeptCommand ?? 1, there?.lowestKeptCommand ?? 1)
    )
  }

  // MARK: - The binding

  /// The finding about the store's binding, if it is wrong.
  private var bindingFinding: VerifyReport.Finding? {
    func missing(
      _ message: String, _ path: RelativePath, remedy: Remedy? = nil
    ) -> VerifyReport.Finding {
      VerifyReport.Finding(
        .bindingMissing, path: path.description, message,
        detail: "root \(binding.root), generation \(binding.generationOrdinal) "
          + "\(binding.generation)",
        remedy: remedy)
    }
    let roots = directory.inventory.applications.map(\.root)
    if !roots.isEmpty, !roots.contains(binding.root) {
      return missing(
        "This is not the shared directory that the store belongs to.",
        DirectoryLayout.path(of: ApplicationName(root: binding.root)),
        remedy:
          "Name the directory in which the document “\(binding.documentIdentifier)” is. If it "
          + "is this one, restore the file from another device's copy of the directory.")
    }
    let folder = layout.document.folder
    guard let document = directory.inventory.documents[binding.document] else {
      return missing("The store's document is not in the shared directory.", folder)
    }
    if document.isDeleted(binding.generation) {
      return missing("The store's document was deleted.", folder)
    }
    guard document.ordinals[binding.generation] != nil else {
      return missing(
        "The store's generation of the document is not in the shared directory.", folder)
    }
    guard document.counting?.key == binding.generation else {
      return missing(
        "The document was begun again, and this store belongs to the earlier one.", folder)
    }
    return nil
  }

  // MARK: - Own files

  private func ownFindings(_ facts: GenerationFacts) -> [VerifyReport.Finding] {
    let client = binding.client
    let found = facts.changes[client] ?? NumberedFacts()
    let lowest = lowestKept(facts).changeSets
    var findings: [VerifyReport.Finding] = []
    for sealed in store.sealed
    where sealed.client == client && sealed.isPublished && sealed.number >= lowest {
      let path = layout.path(
        of: ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash)), by: client)
      if found.claims[sealed.number] == nil {
        findings.append(
          VerifyReport.Finding(
            .ownFileMissing, path: path.description,
            "Change set \(sealed.number) of this store was published and is not there.",
            remedy: sealed.isKept
              ? nil
              : "Run \(.synchronizeThoroughly), which uploads the whole store in place of what "
                + "cannot be put back."))
      } else if found.differs(sealed.number, from: sealed.hash) {
        findings.append(differing(sealed.number, of: client, sealed.hash))
      }
    }
    let sealed = store.sealed.last { $0.client == client }?.number ?? 0
    let head = max(store.vector?.number(of: client) ?? 0, sealed)
    for number in found.numbers where number > head {
      for claim in found.claims[number] ?? [] where claim.hash != nil {
        findings.append(
          VerifyReport.Finding(
            .storeBehind, path: claim.path.description,
            "Change set \(number) is this store's, which has made \(head) only.",
            detail: "client \(client)"))
      }
    }
    return findings
  }

  private func commandFindings(_ facts: GenerationFacts) -> [VerifyReport.Finding] {
    let found = facts.commands[binding.client] ?? NumberedFacts()
    let lowest = lowestKept(facts).commands
    return store.commands.compactMap { command in
      guard command.isPublished, let sealed = command.sealed, sealed.number >= lowest,
        found.claims[sealed.number] == nil
      else { return nil }
      let path = layout.path(
        of: CommandName(number: sealed.number, hash: HashFragment(sealed.hash)),
        by: binding.client)
      return VerifyReport.Finding(
        .ownFileMissing, path: path.description,
        "Command \(sealed.number) of this store was published and is not there.")
    }
  }

  private func markerFindings(_ facts: GenerationFacts) -> [VerifyReport.Finding] {
    let own = StoreRecords.ownMarker(in: store.records)
    let life = directory.inventory.documents[binding.document]?.lives[binding.generation]
    let listed = life?.markers.filter { $0.client == binding.client } ?? []
    var findings: [VerifyReport.Finding] = []
    let revision = own?.content.revision ?? 0
    for name in listed
    where name.revision > revision || (name.revision == revision && name.description != own?.name) {
      findings.append(
        VerifyReport.Finding(
          .storeBehind, path: layout.path(of: name).description,
          "A marker is this store's, which has not made it.",
          detail: "the store knows revision \(revision)"))
    }
    // If the store is an older state, the markers in the directory have
    // replaced its own.
    let isReplaced = listed.contains { $0.revision > revision }
    if let own, let name = MarkerName(own.name), !listed.contains(name), !isReplaced {
      findings.append(
        VerifyReport.Finding(
          .ownFileMissing, path: layout.path(of: name).description,
          "This store's last marker was published and is not there."))
    }
    return findings
  }

  // MARK: - Applied change sets

  private func appliedFindings(_ facts: GenerationFacts) -> [VerifyReport.Finding] {
    var findings: [VerifyReport.Finding] = []
    for (client, entry) in store.vector?.sorted ?? [] where client != binding.client {
      if facts.changes[client]?.differs(entry.number, from: entry.hash) ?? false {
        findings.append(differing(entry.number, of: client, entry.hash))
      }
      let head = facts.head(of: client)
      guard entry.number > head else { continue }
      findings.append(
        VerifyReport.Finding(
          .directoryBehind, path: layout.syncChanges(of: client).description,
          "The store has applied change set \(entry.number) of a device that has published "
            + "\(head) here.", detail: "client \(client)"))
    }
    return findings
  }

  private func differing(
    _ number: UInt64, of client: ClientIdentifier, _ hash: ContentHash
  ) -> VerifyReport.Finding {
    let path = directory.generations[binding.generation]?.changes[client]?.claims[number]?.first?
      .path
    return VerifyReport.Finding(
      .appliedDiffers, path: (path ?? layout.syncChanges(of: client)).description,
      "The store has another content of change set \(number) than is there.",
      detail: "client \(client); the store has \(hash.nameFragment)")
  }
}
