import SyncDirectory
import SyncModel
import SyncStore

extension DocumentDescription {
  /// What became of the document of a store.
  public enum Standing: Hashable, Sendable {
    /// The store's generation of it counts.
    case current
    /// It was deleted.
    case deleted(DocumentDescription.Deletion)
    /// It was deleted and created again.
    case createdAgain(DocumentDescription)
    /// Another generation counts: two devices created the document at the same
    /// time, or it was reset.
    case outnumbered(DocumentDescription)
  }
}

extension DocumentSteps {
  /// Returns what became of the document. Throws as ``check(_:)`` does if that
  /// is not known.
  func standing(of binding: StoreBinding) throws -> DocumentDescription.Standing {
    do {
      try check(binding)
      return .current
    } catch let error as SyncError {
      switch error.code {
      case .documentDeleted:
        let listing = Listing(
          try files.listIfPresent(
            DirectoryLayout.Document(binding.document).folder, as: DocumentEntryName.self))
        guard let name = listing.tombstone(for: UInt64(binding.generationOrdinal)) else {
          throw error
        }
        return .deleted(try deletion(name, of: binding.document))
      case .documentReplaced, .generationReplaced:
        guard let found = try find(binding.document) else { throw error }
        return error.code == .documentReplaced
          ? .createdAgain(found.description) : .outnumbered(found.description)
      default: throw error
      }
    }
  }

  /// Returns the client that deleted a document, and the time, as far as the
  /// tombstone can be read.
  func deletion(_ name: DeletedName, of document: DocumentName) throws
    -> DocumentDescription.Deletion
  {
    var deletion = DocumentDescription.Deletion(client: name.client)
    do {
      let file = try files.read(
        DirectoryLayout.Document(document).path(of: name), as: TombstoneFile.self, .tombstone)
      deletion.clientDescription = file.clientDescription
      deletion.milliseconds = file.deletedMilliseconds
    } catch let error where error.concernsOneFile {
      files.context.environment.logger.notice("tombstone \(name) of \(document): \(error)")
    }
    return deletion
  }
}

extension DocumentSteps {
  /// Returns the ordinal of a document's next generation.
  func nextOrdinal(of document: DocumentName) throws -> UInt64 {
    let folder = DirectoryLayout.Document(document).folder
    return Listing(try files.listIfPresent(folder, as: DocumentEntryName.self)).nextOrdinal
  }
}

extension DocumentSteps {
  /// The obstacle to a generation that was begun and is not complete.
  enum Rival {
    /// Nothing prevents the generation from counting.
    case none
    /// The generation was deleted.
    case deleted
    /// Another generation counts, and is not deleted.
    case counting(GenerationFile)
  }

  /// Returns the obstacle to the generation that a store is bound to, which may
  /// not have been published.
  func rival(of binding: StoreBinding) throws -> Rival {
    let ordinal = UInt64(binding.generationOrdinal)
    let own = GenerationName(ordinal: ordinal, key: binding.generation)
    let folder = DirectoryLayout.Document(binding.document).folder
    let listing = Listing(try files.listIfPresent(folder, as: DocumentEntryName.self))
    // An unpublished generation gives way to one of the same ordinal, whatever
    // the keys.
    let isPublished = listing.generations.contains(own)
    let living = try all().first {
      $0.file.identifier == binding.documentIdentifier && !$0.isDeleted
    }
    if let file = living?.file, file.generation != binding.generation,
      file.document != binding.document || (!isPublished && file.ordinal == ordinal)
        || own < GenerationName(ordinal: file.ordinal, key: file.generation)
    {
      return .counting(file)
    }
    return listing.isDeleted(ordinal) ? .deleted : .none
  }
}

extension DocumentSteps {
  /// The relation of the generation that counts to that of a store.
  enum Lineage {
    /// It is a successor of the store's generation: the document was reset.
    case successor(GenerationFile)
    /// It is no successor: another device has created the document.
    case stranger(GenerationFile)
    /// A file in the line of predecessors has not arrived.
    case unknown
  }

  /// Returns how the generation that counts is related to that of a binding,
  /// which does not count.
  func lineage(of binding: StoreBinding) throws -> Lineage {
    let layout = DirectoryLayout.Document(binding.document)
    let listing = Listing(try files.listIfPresent(layout.folder, as: DocumentEntryName.self))
    guard let counting = listing.counting, let found = try find(binding.document),
      found.file.generation == counting.key
    else { return .unknown }
    let line = try predecessors(of: found.file, listing)
    if line.keys.contains(binding.generation) { return .successor(found.file) }
    return line.isComplete ? .stranger(found.file) : .unknown
  }

  /// Returns the generations that a generation has replaced, the last one first,
  /// as far as their files have arrived.
  func predecessors(of generation: GenerationFile) throws -> [IntegrityKey] {
    let folder = DirectoryLayout.Document(generation.document).folder
    return try predecessors(
      of: generation, Listing(files.listIfPresent(folder, as: DocumentEntryName.self))
    ).keys
  }

  private func predecessors(
    of generation: GenerationFile, _ listing: Listing
  ) throws -> (keys: [IntegrityKey], isComplete: Bool) {
    let layout = DirectoryLayout.Document(generation.document)
    var file = generation
    var keys: [IntegrityKey] = []
    // Each generation has a lower ordinal than the one after it.
    while let previous = file.previous {
      keys.append(previous)
      guard
        let name = listing.generations.first(where: {
          $0.key == previous && $0.ordinal < file.ordinal
        })
      else { return (keys, false) }
      do {
        file = try files.read(layout.path(of: name), as: GenerationFile.self, .generation)
      } catch let error where error.concernsOneFile {
        files.context.environment.logger.notice("generation \(name): \(error)")
        return (keys, false)
      }
    }
    return (keys, true)
  }
}
