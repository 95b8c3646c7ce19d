import SyncDirectory
import SyncModel

/// Deleting a document, and measuring its files.
extension DocumentSteps {
  /// Measures a document's folder: the generation that counts, the files left
  /// of earlier ones, and the files that describe them.
  func contents(of name: DocumentName) throws -> DocumentDescription.Contents {
    let layout = DirectoryLayout.Document(name)
    let entries = try files.listing(layout.folder, as: DocumentEntryName.self)
    let listing = Listing(entries.names)
    var inventory = try DocumentFiles(files).inventory(of: listing.lives.sorted(), in: name)
    inventory.foreign += DocumentFiles.paths(entries.foreign, in: layout.folder)
    for path in listing.generations.map(layout.path) + listing.deleted.map(layout.path) {
      inventory.files.append(.init(path: path, byteCount: try files.byteCount(of: path)))
    }
    var contents = DocumentDescription.Contents()
    contents.fileCount = inventory.files.count
    contents.byteCount = inventory.byteCount
    contents.foreign = inventory.foreignNames
    if let counting = listing.counting {
      let states = try MarkerSteps.states(files, layout: layout.generation(counting.key))
      contents.clients = states.keys.sorted()
      contents.lastSyncMilliseconds = states.values.compactMap(\.milliseconds).max()
    }
    return contents
  }

  /// Publishes a tombstone, unless the document was deleted before, and returns
  /// the files to remove.
  ///
  /// The file of the generation stays with the tombstone: it contains the
  /// document's name, and the ordinal from which the next generation continues.
  ///
  /// - Parameter root: The directory's identifier.
  /// - Returns: `nil` if no file that names a generation of the document has
  ///   arrived.
  func bury(
    _ name: DocumentName, root: RootIdentifier, by client: ClientIdentifier,
    described description: String, isPreview: Bool
  ) throws -> DocumentFiles.Inventory? {
    let layout = DirectoryLayout.Document(name)
    let entries = try files.listing(layout.folder, as: DocumentEntryName.self)
    let listing = Listing(entries.names)
    guard let counting = listing.counting else { return nil }
    if !isPreview, !listing.isDeleted(counting.ordinal) {
      try files.publish(
        TombstoneFile(
          root: root, document: name, ordinal: counting.ordinal, client: client,
          clientDescription: description,
          deletedMilliseconds: files.context.environment.now()),
        as: .tombstone,
        at: layout.path(of: DeletedName(ordinal: counting.ordinal, client: client)), by: client)
    }
    let ended = listing.generations.filter { $0.ordinal <= counting.ordinal }.map(\.key)
    var inventory = try DocumentFiles(files).inventory(
      of: listing.lives.intersection(ended).sorted(), in: name)
    inventory.foreign += DocumentFiles.paths(entries.foreign, in: layout.folder)
    return inventory
  }
}
