import SyncDirectory
import SyncModel

/// Measures and removes the files in a document's folder.
struct DocumentFiles {
  /// The files and folders that were found.
  struct Inventory {
    /// A file of ours.
    struct File {
      var path: RelativePath
      var byteCount: Int
    }

    /// Files of ours, in the order in which to remove them.
    var files: [File] = []
    /// Folders of ours, inner ones first.
    var folders: [RelativePath] = []
    /// Files that are not ours.
    var foreign: [RelativePath] = []

    var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }
    /// The foreign files as text, in order.
    var foreignNames: [String] { foreign.map(\.description).sorted() }

    mutating func append(_ other: Inventory) {
      files += other.files
      folders += other.folders
      foreign += other.foreign
    }
  }

  let files: SharedFiles
  private var context: OperationContext { files.context }

  init(_ files: SharedFiles) { self.files = files }

  /// Lists the files of a document's generations, including everything that a
  /// slow synchronizer may have brought in the meantime.
  func inventory(
    of lives: some Sequence<IntegrityKey>, in document: DocumentName
  ) throws -> Inventory {
    var inventory = Inventory()
    for life in lives {
      let layout = DirectoryLayout.Document(document).generation(life)
      let entries = try files.listing(layout.folder, as: GenerationEntryName.self)
      inventory.foreign += Self.paths(entries.foreign, in: layout.folder)
      for entry in entries.names {
        switch entry {
        case .recentSyncs: try add(layout.recentSyncs, as: MarkerName.self, to: &inventory)
        case .syncChanges:
          try addClients(layout.syncChanges, as: ChangeFileName.self, to: &inventory)
        case .syncCommands:
          try addClients(layout.syncCommands, as: CommandName.self, to: &inventory)
        case .wholeStore:
          try addClients(layout.wholeStores, as: WholeStoreName.self, to: &inventory)
        case .assets:
          // This version puts no files in this folder.
          let assets = try files.listing(layout.assets, as: GenerationEntryName.self)
          inventory.foreign += Self.paths(assets.foreign, in: layout.assets)
          inventory.folders.append(layout.assets)
        }
      }
      inventory.folders.append(layout.folder)
    }
    return inventory
  }

  /// Adds the files in a folder, and the folder.
  func add<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type, to inventory: inout Inventory
  ) throws {
    let listing = try files.listing(folder, as: type)
    inventory.foreign += Self.paths(listing.foreign, in: folder)
    context.report { $0.totalCount += listing.names.count }
    for name in listing.names.map(\.description).sorted() {
      guard let path = folder.appending(name) else { continue }
      inventory.files.append(
        Inventory.File(path: path, byteCount: try files.byteCount(of: path)))
      context.report { $0.completedCount += 1 }
    }
    inventory.folders.append(folder)
  }

  private func addClients<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type, to inventory: inout Inventory
  ) throws {
    let listing = try files.listing(folder, as: ClientIdentifier.self)
    inventory.foreign += Self.paths(listing.foreign, in: folder)
    for client in listing.names.sorted() {
      guard let path = folder.appending(client.description) else { continue }
      try add(path, as: type, to: &inventory)
    }
    inventory.folders.append(folder)
  }

  /// Removes files, then the folders that are empty by then. Foreign files and
  /// their folders stay.
  func remove(_ inventory: Inventory) throws {
    context.begin(.removing, count: inventory.files.count, bytes: inventory.byteCount)
    for file in inventory.files {
      try files.remove(file.path)
      context.report {
        $0.completedCount += 1
        $0.completedBytes += file.byteCount
      }
    }
    for folder in inventory.folders { try files.removeIfEmpty(folder) }
  }

  /// Returns the paths of foreign names, without those that cannot be paths.
  static func paths(_ names: [ForeignName], in folder: RelativePath) -> [RelativePath] {
    names.compactMap { folder.appending($0.name) }
  }
}
