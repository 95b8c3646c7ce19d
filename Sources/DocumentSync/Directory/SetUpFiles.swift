import SyncDirectory
import SyncModel
import SyncStore

/// Finds and removes the files of a document whose set-up was begun and is not complete.
///
/// As long as no whole store of the document is in the directory, no other device can join, so that
/// the files may go without a tombstone.
struct SetUpFiles {
  /// What became of the files.
  enum Outcome: Equatable {
    /// They are gone.
    case removed
    /// The directory is not the one of the set-up: it may not be mounted.
    case elsewhere
    /// A whole store was published, so that other devices can join: everything stays.
    case joinable
    /// The same, and another device takes part by now.
    case shared
  }

  let files: SharedFiles
  let binding: StoreBinding
  /// Whether the store knows of a whole store that it has uploaded, which the directory may not list
  /// at the moment.
  var hasUploaded = false
  /// Whether the call that ends the set-up has begun it. Another device may use an application's
  /// file that has been there for longer, although its own files have not arrived.
  var isNew = false

  private var client: ClientIdentifier { binding.client }
  private var layout: DirectoryLayout.Document { DirectoryLayout.Document(binding.document) }
  private var generation: GenerationName {
    GenerationName(ordinal: UInt64(binding.generationOrdinal), key: binding.generation)
  }

  /// Removes the files, unless another device can join the document. Throws if the directory cannot
  /// be reached, or does not let them be removed; the next call continues.
  func remove() throws -> Outcome {
    guard try files.roots().contains(binding.root) else { return .elsewhere }
    let outcome = try standing()
    guard outcome == .removed else { return outcome }
    try removeDocument()
    try Self.removeClient(client, files)
    if isNew { try Self.removeApplication(of: client, files) }
    return .removed
  }

  /// Whether the files may go.
  private func standing() throws -> Outcome {
    let life = layout.generation(binding.generation)
    let listed = [life.recentSyncs, life.wholeStores, life.syncChanges]
    let markers = try files.listIfPresent(listed[0], as: MarkerName.self)
    let folders = try listed[1...].flatMap {
      try files.listIfPresent($0, as: ClientIdentifier.self)
    }
    if Set(markers.map(\.client)).union(folders).contains(where: { $0 != client }) {
      return .shared
    }
    let wholeStores = try files.listIfPresent(
      life.wholeStores(of: client), as: WholeStoreName.self)
    return wholeStores.isEmpty && !hasUploaded ? .removed : .joinable
  }

  /// Removes the generation's file first: nothing else shows the document.
  private func removeDocument() throws {
    let listing = DocumentSteps.Listing(
      try files.listIfPresent(layout.folder, as: DocumentEntryName.self))
    // What was deleted stays with its tombstone.
    if listing.generations.contains(generation), !listing.isDeleted(generation.ordinal) {
      try files.remove(layout.path(of: generation))
    }
    if listing.lives.contains(binding.generation) {
      let steps = DocumentFiles(files)
      try steps.remove(try steps.inventory(of: [binding.generation], in: binding.document))
    }
    try files.removeIfEmpty(layout.folder)
    try files.removeIfEmpty(DirectoryLayout.documents)
  }

  /// Removes the description and the unfinished files of a client.
  private static func removeClient(_ client: ClientIdentifier, _ files: SharedFiles) throws {
    for name in try files.listIfPresent(DirectoryLayout.clientDevices, as: ClientDeviceName.self)
    where name.client == client {
      try files.remove(DirectoryLayout.path(of: name))
    }
    try files.removeIfEmpty(DirectoryLayout.clientDevices)
    try files.removeLeftovers(of: client)
    try files.removeIfEmpty(DirectoryLayout.temporary(of: client))
    try files.removeIfEmpty(DirectoryLayout.temporary)
  }

  /// Removes the files of a client that has begun nothing but the application.
  static func removeBeginnings(of client: ClientIdentifier, _ files: SharedFiles) throws {
    try removeClient(client, files)
    try removeApplication(of: client, files)
  }

  /// Removes the application's file if the client has made it and nothing else is in the directory.
  private static func removeApplication(
    of client: ClientIdentifier, _ files: SharedFiles
  ) throws {
    let names = try files.list(.root, as: RootName.self)
    let applications = names.compactMap { name in
      if case .application(let name) = name { DirectoryLayout.path(of: name) } else { nil }
    }
    guard !names.contains(where: \.isFolder),
      try applications.allSatisfy({
        try files.read($0, as: ApplicationFile.self, .application).creator == client
      })
    else { return }
    if names.contains(.readme) {
      let text = Array(DirectoryLayout.readmeText.utf8)
      if try files.measure(DirectoryLayout.readme) == text.count,
        try files.read(DirectoryLayout.readme, limit: text.count) == text
      {
        try files.remove(DirectoryLayout.readme)
      }
    }
    for path in applications { try files.remove(path) }
  }
}
