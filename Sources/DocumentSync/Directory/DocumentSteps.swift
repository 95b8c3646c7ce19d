import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Finds, creates and checks the documents of a shared directory.
struct DocumentSteps {
  /// The entries of a document's folder.
  struct Listing {
    var generations: [GenerationName] = []
    var deleted: [DeletedName] = []
    var lives: Set<IntegrityKey> = []

    init(_ names: [DocumentEntryName]) {
      for name in names {
        switch name {
        case .generation(let name): generations.append(name)
        case .deleted(let name): deleted.append(name)
        case .life(let key): lives.insert(key)
        }
      }
    }

    /// The generation that counts: highest ordinal, then lowest key.
    var counting: GenerationName? { generations.max() }

    /// Returns the tombstone that deletes a generation of this ordinal.
    func tombstone(for ordinal: UInt64) -> DeletedName? {
      deleted.filter { $0.ordinal >= ordinal }.max {
        ($0.ordinal, $1.client) < ($1.ordinal, $0.client)
      }
    }

    /// Whether a tombstone deletes a generation of this ordinal.
    func isDeleted(_ ordinal: UInt64) -> Bool { tombstone(for: ordinal) != nil }

    /// The ordinal of the next generation, greater than all others.
    var nextOrdinal: UInt64 {
      (generations.map(\.ordinal) + deleted.map(\.ordinal)).reduce(0, max) + 1
    }
  }

  /// A document and the file that describes its generation.
  struct Found {
    var file: GenerationFile
    /// The client that deleted the document, and the time; `nil` if it was not
    /// deleted.
    var deletion: DocumentDescription.Deletion?
    /// The ordinal of a next generation.
    var nextOrdinal: UInt64
    var isDeleted: Bool { deletion != nil }

    var description: DocumentDescription {
      var description = DocumentDescription(
        identifier: file.identifier, name: file.document, generation: file.generation,
        ordinal: file.ordinal, description: file.description, creator: file.creator,
        createdMilliseconds: file.createdMilliseconds, isDeleted: isDeleted)
      description.userInfo = file.userInfo ?? [:]
      description.deletion = deletion
      return description
    }
  }

  let files: SharedFiles
  private var context: OperationContext { files.context }

  init(_ files: SharedFiles) { self.files = files }

  /// Makes the folder's name for a document that is created.
  ///
  /// It is a hash of the identifiers, so that two clients that create the same
  /// document without seeing each other's meet in one folder. It has no other
  /// meaning: readers go by the content of the generation's file.
  static func name(application: String, identifier: String) -> DocumentName {
    let hash = ContentHash(
      of: Array("document\0\(application)\0\(identifier)".utf8))
    return DocumentName(bits: Bits128(bytes: hash.bytes.prefix(16)) ?? Bits128(high: 0, low: 0))
  }

  /// Returns every document, in order of identifier. If several have one
  /// identifier, returns the one whose generation counts.
  ///
  /// A document whose file cannot be read yet is left out; no device can use it
  /// until the file has arrived.
  func all() throws -> [Found] { try look().found }

  /// Returns the same documents as ``all()``, and those whose file is missing
  /// or cannot be read.
  func look() throws -> (found: [Found], unreadable: [DocumentDescription.Unreadable]) {
    var documents: [String: Found] = [:]
    var unreadable: [DocumentDescription.Unreadable] = []
    for name in try files.listIfPresent(DirectoryLayout.documents, as: DocumentName.self) {
      guard let found = try find(name, unreadable: { unreadable.append($0) }) else { continue }
      if let other = documents[found.file.identifier], other.counts(over: found) { continue }
      documents[found.file.identifier] = found
    }
    return (
      documents.values.sorted { $0.file.identifier < $1.file.identifier },
      unreadable.sorted { $0.path < $1.path }
    )
  }

  /// Returns the document in a folder, by the generation that counts; `nil` if
  /// its file has not arrived.
  ///
  /// - Parameter unreadable: Called if the document's file is missing or cannot
  ///   be read.
  func find(
    _ name: DocumentName, unreadable: (DocumentDescription.Unreadable) -> Void = { _ in }
  ) throws -> Found? {
    let layout = DirectoryLayout.Document(name)
    let listing = Listing(try files.listIfPresent(layout.folder, as: DocumentEntryName.self))
    guard let counting = listing.counting else {
      if let life = listing.lives.min(by: { $0.description < $1.description }),
        listing.deleted.isEmpty
      {
        unreadable(
          DocumentDescription.Unreadable(
            name: name, path: layout.folder.description, isMissing: true, isDeleted: false,
            detail: "generation \(life)"))
      }
      return nil
    }
    let path = layout.path(of: counting)
    do {
      let file = try files.read(path, as: GenerationFile.self, .generation)
      try FormatVersion.check(
        leastReader: file.leastReaderVersion, features: file.requiredFeatures,
        operation: context.verb, path: files.userPath(path))
      guard file.document == name, file.generation == counting.key,
        file.ordinal == counting.ordinal
      else {
        throw context.error(
          .malformedFile, path: files.userPath(path),
          "The document's file belongs to another document.",
          remedy: "Move the file out of the shared directory if it was copied there.")
      }
      let tombstone = listing.tombstone(for: counting.ordinal)
      return Found(
        file: file, deletion: try tombstone.map { try deletion($0, of: name) },
        nextOrdinal: listing.nextOrdinal)
    } catch let error where error.concernsOneFile {
      context.environment.logger.notice("document \(name): \(error)")
      if (error as? DirectoryError)?.code != .notFound {
        unreadable(
          DocumentDescription.Unreadable(
            name: name, path: path.description, isMissing: false,
            isDeleted: listing.isDeleted(counting.ordinal),
            detail: "\(error)"))
      }
      return nil
    }
  }

  /// Returns the document with an identifier, even if it was deleted.
  func requireAny(_ identifier: String) throws -> Found {
    let (documents, unreadable) = try look()
    guard let found = documents.first(where: { $0.file.identifier == identifier }) else {
      throw missing(identifier, among: documents.filter { !$0.isDeleted }, unreadable)
    }
    return found
  }

  /// Throws if the file that describes the document with an identifier is
  /// damaged: the folder's name follows from the identifier. A missing file may
  /// still arrive, and is checked then.
  func checkReadable(_ identifier: String, of application: String) throws {
    let name = Self.name(application: application, identifier: identifier)
    guard
      let document = try look().unreadable.first(where: {
        $0.name == name && !$0.isMissing
      })
    else { return }
    throw damaged(document)
  }

  /// Returns the document to join: the one with `identifier`, or the only one.
  func require(_ identifier: String?) throws -> Found {
    let (documents, unreadable) = try look()
    let alive = documents.filter { !$0.isDeleted }
    if let identifier {
      guard let found = documents.first(where: { $0.file.identifier == identifier }) else {
        throw missing(identifier, among: alive, unreadable)
      }
      if let deletion = found.deletion { throw deleted(identifier, deletion) }
      return found
    }
    guard alive.count <= 1 else {
      throw context.error(
        .documentAmbiguous, path: files.directory.location,
        "There are several documents: \(Self.list(alive)).", remedy: "Say which one.")
    }
    guard let only = alive.first else { throw missing(nil, among: [], unreadable) }
    return only
  }

  /// Publishes the beginning of the document that a store is bound to.
  ///
  /// A repeated call changes nothing. Throws `documentExists` if the directory
  /// has another document with the identifier, and `generationReplaced` if
  /// another generation, which counts, was published at the same time.
  ///
  /// - Parameter previous: The generation that the store has left for this one;
  ///   `nil` if it has left none, as when it creates a deleted document again.
  func create(
    _ binding: StoreBinding, after previous: IntegrityKey? = nil, description: String,
    userInfo: SyncUserInfo? = nil
  ) throws -> Found {
    try files.checkRoot(binding)
    let layout = DirectoryLayout.Document(binding.document)
    let ordinal = UInt64(binding.generationOrdinal)
    let name = GenerationName(ordinal: ordinal, key: binding.generation)
    try checkAbsent(
      binding.documentIdentifier, except: binding.generation,
      successor: (document: binding.document, ordinal: ordinal))
    let listing = Listing(try files.listIfPresent(layout.folder, as: DocumentEntryName.self))
    if !listing.generations.contains(name) {
      try files.publish(
        GenerationFile(
          root: binding.root, document: binding.document, identifier: binding.documentIdentifier,
          generation: binding.generation, ordinal: ordinal, description: description,
          previous: previous ?? listing.generations.filter { $0.ordinal < ordinal }.max()?.key,
          creator: binding.client,
          createdMilliseconds: context.environment.now(), userInfo: userInfo),
        as: .generation, at: layout.path(of: name), by: binding.client)
    }
    let found = try find(binding.document)
    if let found, found.file.generation == binding.generation { return found }
    // The listing may not contain the generation that was just published: then
    // no other one has won.
    if let found,
      name < GenerationName(ordinal: found.file.ordinal, key: found.file.generation)
    {
      throw replaced(binding)
    }
    throw try absent(
      binding, listing: Listing(files.listIfPresent(layout.folder, as: DocumentEntryName.self)))
  }

  /// Throws `documentExists` if the directory has a document with this
  /// identifier whose generation is not `own`. Returns the deleted document
  /// that may be replaced.
  ///
  /// - Parameter successor: A generation that replaces an earlier one of the
  ///   same document.
  @discardableResult
  func checkAbsent(
    _ identifier: String, except own: IntegrityKey? = nil,
    successor: (document: DocumentName, ordinal: UInt64)? = nil
  ) throws -> Found? {
    guard let found = try all().first(where: { $0.file.identifier == identifier }),
      found.file.generation != own
    else { return nil }
    if let successor, found.file.document == successor.document,
      found.file.ordinal < successor.ordinal
    {
      return nil
    }
    guard found.isDeleted else {
      throw context.error(
        .documentExists, path: files.directory.location,
        "The document “\(identifier)” is in this directory already.",
        remedy: "Get it with \(.join), or choose another identifier.")
    }
    return found
  }

  /// Throws unless the generation that a store is bound to is in the directory
  /// and counts. If it does, the check costs one listing, and the root is
  /// checked before a file is touched.
  func check(_ binding: StoreBinding) throws {
    let folder = DirectoryLayout.Document(binding.document).folder
    let listing = Listing(try files.listIfPresent(folder, as: DocumentEntryName.self))
    let ordinal = UInt64(binding.generationOrdinal)
    let own = GenerationName(ordinal: ordinal, key: binding.generation)
    if let tombstone = listing.tombstone(for: ordinal) {
      if !listing.generations.contains(own) { try checkIsNoOther(binding) }
      if let counting = listing.counting, !listing.isDeleted(counting.ordinal) {
        throw createdAgain(binding)
      }
      throw deleted(binding.documentIdentifier, try deletion(tombstone, of: binding.document))
    }
    guard let counting = listing.counting,
      listing.generations.contains(own)
    else { throw try absent(binding, listing: listing) }
    files.expectRoot(binding)
    guard counting.key == binding.generation else { throw replaced(binding) }
  }

  /// Throws if the directory belongs to another application. After everything
  /// was removed it belongs to none, which is no error here.
  private func checkIsNoOther(_ binding: StoreBinding) throws {
    let roots = try files.roots()
    guard roots.isEmpty || roots.contains(binding.root) else {
      throw files.otherRoot(binding, roots)
    }
  }

  private func absent(_ binding: StoreBinding, listing: Listing) throws -> SyncError {
    try files.checkRoot(binding)
    let layout = DirectoryLayout.Document(binding.document).generation(binding.generation)
    let isThere = try !files.listIfPresent(layout.recentSyncs, as: MarkerName.self).isEmpty
    return context.error(
      .generationMissing,
      path: files.userPath(DirectoryLayout.Document(binding.document).folder),
      listing.generations.isEmpty
        ? "The document “\(binding.documentIdentifier)” is not in the shared directory."
        : "This store's generation of the document is not in the shared directory.",
      remedy: "Wait until the shared directory has arrived completely, then sync again. "
        + (isThere
          ? "If the file that describes the generation is lost, \(.synchronizeThoroughly) writes it again."
          : listing.generations.contains(where: { $0.ordinal < binding.generationOrdinal })
            ? "If it was put back to a state before the document was reset, run "
              + "\(.synchronizeThoroughly) on a device that took part in the reset: it begins the "
              + "generation there again, and the others go on as after the reset."
            : "If the document is lost, take the store out of sync with \(.leaveAbandoning), then "
              + "begin it again with \(.create), or, if another device has, join with "
              + "\(.joinMerging)."),
      detail: "generation \(binding.generationOrdinal) \(binding.generation)")
  }

  func deleted(_ identifier: String, _ deletion: DocumentDescription.Deletion) -> SyncError {
    let who = deletion.clientDescription.map { " on “\($0)”" } ?? ""
    let when = deletion.milliseconds.map { " at " + Self.localTime($0) } ?? ""
    return context.error(
      .documentDeleted, path: files.directory.location,
      "The document “\(identifier)” was deleted\(who)\(when).",
      remedy:
        "The database on this device is unchanged. To share it again: \(.synchronizeRecreating). "
        + "To stop: \(.leaveAbandoning).",
      detail: "by \(deletion.client)")
  }

  /// Returns a time in the time zone of this device, to the second.
  private static func localTime(_ milliseconds: Int64) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.dateFormat = "yyyy-MM-dd HH:mm:ss"
    return formatter.string(from: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
  }

  /// The error of a document that was deleted and created again.
  private func createdAgain(_ binding: StoreBinding) -> SyncError {
    context.error(
      .documentReplaced,
      path: files.userPath(DirectoryLayout.Document(binding.document).folder),
      "The document “\(binding.documentIdentifier)” was deleted, and another was created under "
        + "the same name.",
      remedy:
        "The database on this device is unchanged, with all its edits. To merge its rows into "
        + "the other document: \(.synchronizeMerging). To stop: \(.leaveAbandoning).")
  }

  /// The error of a store whose generation does not count.
  func replaced(_ binding: StoreBinding) -> SyncError {
    context.error(
      .generationReplaced,
      path: files.userPath(DirectoryLayout.Document(binding.document).folder),
      "The document “\(binding.documentIdentifier)” was reset on another device, or begun there, "
        + "too. This store has not taken that over yet.",
      remedy: "Run \(.synchronize) once the shared directory has arrived completely. Your edits "
        + "are kept.")
  }

  private func missing(
    _ identifier: String?, among alive: [Found], _ unreadable: [DocumentDescription.Unreadable]
  ) -> SyncError {
    // The unreadable document may be the wanted one.
    if let document = unreadable.first(where: { !$0.isDeleted }) { return damaged(document) }
    let what = identifier.map { "no document “\($0)”" } ?? "no document"
    return context.error(
      .documentMissing, path: files.directory.location,
      "There is \(what) in the shared directory.",
      remedy: alive.isEmpty
        ? "Create the document on the device that has it, and wait until it has arrived here."
        : "There are: \(Self.list(alive)).")
  }

  private func damaged(_ document: DocumentDescription.Unreadable) -> SyncError {
    context.error(
      .malformedFile, path: files.directory.location + "/" + document.path,
      "The file that describes a document is \(document.fault).",
      remedy: DocumentDescription.Unreadable.remedy, detail: document.detail)
  }

  private static func list(_ documents: [Found]) -> String {
    documents.map { "“\($0.file.identifier)”" }.joined(separator: ", ")
  }
}

extension DocumentSteps.Found {
  /// Whether this document counts rather than `other`: an existing one counts
  /// over a deleted one; otherwise the generations decide.
  func counts(over other: Self) -> Bool {
    if isDeleted != other.isDeleted { return !isDeleted }
    return GenerationName(ordinal: other.file.ordinal, key: other.file.generation)
      < GenerationName(ordinal: file.ordinal, key: file.generation)
  }
}
