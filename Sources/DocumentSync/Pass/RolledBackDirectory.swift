import SyncDirectory
import SyncModel
import SyncStore

/// Begins the generation of the store again in a directory that was put back to a state before the
/// document was reset.
///
/// The other devices then go on as after the reset: those of the generation publish their own files
/// again, and those of an earlier one, or of an older state of the store, go over to it with their
/// edits. It runs only if a person asks for it: the files of the generation may just not have arrived.
struct RolledBackDirectory: StoreSteps {
  let session: SyncSession

  /// Writes the file of the store's generation again, and those of generations between it and the last
  /// one in the directory that the store knows. Returns those that it wrote.
  ///
  /// It does so only if the directory has a generation of which the store knows that its own one has
  /// followed it, and the own one was not deleted. If another generation counts, it still does, and
  /// the store goes over to it next, as to one that has replaced the own one or was begun at the same
  /// time.
  func beginAgain() throws -> [RelativePath] {
    let listing = DocumentSteps.Listing(
      try files.listIfPresent(layout.document.folder, as: DocumentEntryName.self))
    let own = GenerationName(ordinal: UInt64(binding.generationOrdinal), key: binding.generation)
    guard !listing.generations.contains(own), !listing.isDeleted(own.ordinal) else { return [] }
    guard let (last, missing) = try line(listing, to: own),
      try files.roots().contains(binding.root)
    else { return [] }
    var (previous, paths) = (last.key, [RelativePath]())
    for name in missing + [own] {
      let path = layout.document.path(of: name)
      var file = GenerationFile(of: binding)
      file.generation = name.key
      file.ordinal = name.ordinal
      file.description = binding.documentIdentifier
      file.previous = previous
      file.createdMilliseconds = context.environment.now()
      context.environment.logger.notice("writing \(path) again, after generation \(previous)")
      previous = name.key
      do {
        try files.publish(file, as: .generation, at: path, by: client)
        paths.append(path)
      } catch let error as DirectoryError where error.code == .exists {
        // Another device does the same at this moment.
        context.environment.logger.notice("\(path): \(error)")
      }
    }
    return paths
  }

  /// Returns the last generation in the directory that the store's own one has followed, and those
  /// between the two; `nil` if there is no such generation.
  ///
  /// The store does not know their ordinals. If they are not certain, it leaves out those in between.
  private func line(
    _ listing: DocumentSteps.Listing, to own: GenerationName
  ) throws -> (last: GenerationName, missing: [GenerationName])? {
    let former = try records.formerGenerations().map(\.generation)
    let there = listing.generations.filter { $0.ordinal < own.ordinal && former.contains($0.key) }
    guard let last = there.max(), let index = former.lastIndex(of: last.key) else { return nil }
    let between = former[(index + 1)...]
    guard own.ordinal - last.ordinal - 1 == between.count else { return (last, []) }
    let missing = zip(between, (last.ordinal + 1)...).map { GenerationName(ordinal: $1, key: $0) }
    return (last, missing)
  }
}
