import SyncDirectory
import SyncModel

/// The names of all files in a shared directory.
struct DirectoryInventory: Hashable {
  /// Folders and files that other users of the root's group cannot use.
  struct Closed: Hashable {
    var first: RelativePath
    /// All of them, by their names.
    var entries: ClosedEntries

    /// The finding about them.
    var finding: VerifyReport.Finding {
      let count = entries.names.count
      return VerifyReport.Finding(
        .groupCannotWrite, path: first.description,
        "The directory is shared with the group “\(entries.group)”, but other users of the group cannot use "
          + (count == 1 ? "this folder or file." : "\(count) folders and files of it."),
        remedy: entries.remedy)
    }
  }

  /// A document's folder.
  struct Document: Hashable {
    private(set) var generations: Set<GenerationName> = []
    private(set) var deleted: Set<DeletedName> = []
    /// The content of each generation's folder.
    var lives: [IntegrityKey: Life] = [:]
    /// The generation that counts.
    private(set) var counting: GenerationName?
    /// By key, the least and the greatest ordinal of a generation's files. They
    /// are equal unless the generation has a second file.
    private(set) var ordinals: [IntegrityKey: ClosedRange<UInt64>] = [:]
    /// The greatest ordinal that a tombstone names.
    private var lastDeleted: UInt64?

    mutating func insert(_ name: GenerationName) {
      generations.insert(name)
      counting = max(counting ?? name, name)
      let known = ordinals[name.key] ?? name.ordinal...name.ordinal
      ordinals[name.key] =
        min(known.lowerBound, name.ordinal)...max(known.upperBound, name.ordinal)
    }

    mutating func insert(_ name: DeletedName) {
      deleted.insert(name)
      lastDeleted = max(lastDeleted ?? name.ordinal, name.ordinal)
    }

    /// Whether the generation with a key was deleted.
    func isDeleted(_ key: IntegrityKey) -> Bool {
      guard let lastDeleted else { return false }
      return ordinals[key].map { lastDeleted >= $0.upperBound } ?? generations.isEmpty
    }
  }

  /// The folder of a generation.
  struct Life: Hashable {
    var markers: Set<MarkerName> = []
    var changes: [ClientIdentifier: Set<ChangeFileName>] = [:]
    var commands: [ClientIdentifier: Set<CommandName>] = [:]
    var wholeStores: [ClientIdentifier: Set<WholeStoreName>] = [:]

    /// The clients that have files in the folder.
    var clients: Set<ClientIdentifier> {
      Set(markers.map(\.client)).union(changes.keys).union(commands.keys).union(wholeStores.keys)
    }

    var fileCount: Int {
      [
        markers.count, changes.values.reduce(0) { $0 + $1.count },
        commands.values.reduce(0) { $0 + $1.count },
        wholeStores.values.reduce(0) { $0 + $1.count },
      ].reduce(0, +)
    }
  }

  var applications: Set<ApplicationName> = []
  var clientDevices: Set<ClientDeviceName> = []
  var clientRemovals: Set<ClientRemovalName> = []
  /// The clients that a device has removed.
  var removed: Set<ClientIdentifier> { Set(clientRemovals.map(\.client)) }
  var documents: [DocumentName: Document] = [:]
  /// The folders and files that other users of the root's group cannot use.
  var closed: Closed?
  /// The findings about names, and about folders that cannot be listed.
  var findings: Set<VerifyReport.Finding> = []

  /// The number of files to read.
  var fileCount: Int {
    applications.count + clientDevices.count + clientRemovals.count
      + documents.values.reduce(0) { sum, document in
        sum + document.generations.count + document.deleted.count
          + document.lives.values.reduce(0) { $0 + $1.fileCount }
      }
  }
}

/// Lists a whole shared directory.
///
/// It lists the markers of each generation first: the files that they announce
/// existed before them, so the later listings contain these files, unless they
/// have not arrived.
struct DirectoryLister {
  let directory: any SharedDirectory
  let context: OperationContext
  /// Whether to look at the permissions of files as well as of folders.
  var checksFiles = true

  /// Lists everything. Throws only errors that concern more than a single
  /// folder.
  func run() throws -> DirectoryInventory {
    context.begin(.listing)
    var inventory = DirectoryInventory()
    for name in try list(.root, as: RootName.self, &inventory) {
      switch name {
      case .readme: break
      case .application(let name): inventory.applications.insert(name)
      case .folder(.encryption): try listReserved(DirectoryLayout.encryption, &inventory)
      case .folder(.clientDevices):
        for name in try list(DirectoryLayout.clientDevices, as: ClientEntryName.self, &inventory) {
          switch name {
          case .device(let name): inventory.clientDevices.insert(name)
          case .removal(let name): inventory.clientRemovals.insert(name)
          }
        }
      case .folder(.temporary): try listLeftovers(&inventory)
      case .folder(.documents):
        for document in try list(DirectoryLayout.documents, as: DocumentName.self, &inventory) {
          let found = try list(document, &inventory)
          inventory.documents[document] = found
        }
      }
    }
    context.endPhase()
    return inventory
  }

  // MARK: - Documents

  private func list(
    _ name: DocumentName, _ inventory: inout DirectoryInventory
  ) throws -> DirectoryInventory.Document {
    let layout = DirectoryLayout.Document(name)
    var document = DirectoryInventory.Document()
    for entry in try list(layout.folder, as: DocumentEntryName.self, &inventory) {
      switch entry {
      case .generation(let name): document.insert(name)
      case .deleted(let name): document.insert(name)
      case .life(let key):
        document.lives[key] = try list(layout.generation(key), &inventory)
      }
    }
    return document
  }

  private func list(
    _ layout: DirectoryLayout.Generation, _ inventory: inout DirectoryInventory
  ) throws -> DirectoryInventory.Life {
    var life = DirectoryInventory.Life()
    let names = Set(try list(layout.folder, as: GenerationEntryName.self, &inventory))
    if names.contains(.recentSyncs) {
      life.markers = Set(try list(layout.recentSyncs, as: MarkerName.self, &inventory))
    }
    if names.contains(.syncCommands) {
      for client in try list(layout.syncCommands, as: ClientIdentifier.self, &inventory) {
        life.commands[client] = Set(
          try list(layout.syncCommands(of: client), as: CommandName.self, &inventory))
      }
    }
    if names.contains(.syncChanges) {
      for client in try list(layout.syncChanges, as: ClientIdentifier.self, &inventory) {
        life.changes[client] = Set(
          try list(layout.syncChanges(of: client), as: ChangeFileName.self, &inventory))
      }
    }
    if names.contains(.wholeStore) {
      for client in try list(layout.wholeStores, as: ClientIdentifier.self, &inventory) {
        life.wholeStores[client] = Set(
          try list(layout.wholeStores(of: client), as: WholeStoreName.self, &inventory))
      }
    }
    if names.contains(.assets) { try listReserved(layout.assets, &inventory) }
    return life
  }

  // MARK: - Folders

  /// Lists a folder in which this version has no files.
  private func listReserved(
    _ folder: RelativePath, _ inventory: inout DirectoryInventory
  ) throws {
    for entry in try entries(folder, &inventory) {
      note(ForeignName(name: entry.name), in: folder, &inventory)
    }
  }

  private func listLeftovers(_ inventory: inout DirectoryInventory) throws {
    for client in try list(DirectoryLayout.temporary, as: ClientIdentifier.self, &inventory) {
      let folder = DirectoryLayout.temporary(of: client)
      for entry in try entries(folder, &inventory) {
        inventory.findings.insert(
          VerifyReport.Finding(
            .leftover, path: Self.path(folder, entry.name),
            "The client \(client) has not published a file: it is doing so, or the call was ended.",
            detail: "of client \(client)"))
      }
    }
  }

  private func list<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type, _ inventory: inout DirectoryInventory
  ) throws -> [Name] {
    let entries = try entries(folder, &inventory)
    let listing = ParsedListing<Name>(entries)
    try findClosed(entries, as: type, in: folder, &inventory)
    for foreign in listing.foreign { note(foreign, in: folder, &inventory) }
    return listing.names
  }

  private func findClosed<Name: DirectoryName>(
    _ entries: [DirectoryEntry], as type: Name.Type, in folder: RelativePath,
    _ inventory: inout DirectoryInventory
  ) throws {
    let names = entries.filter { entry in
      Name(entry.name).map { $0.isFolder || checksFiles } ?? false
    }.map(\.name)
    let found: ClosedEntries?
    do {
      found = try directory.closedEntries(names, in: folder)
    } catch let error as DirectoryError where ![.away, .noAnswer].contains(error.code) {
      // Listing or reading reports it.
      return
    }
    guard let found, let first = found.names.min(), let path = folder.appending(first) else {
      return
    }
    guard var known = inventory.closed else {
      inventory.closed = DirectoryInventory.Closed(first: path, entries: found)
      return
    }
    known.entries.names += found.names
    known.entries.owners.formUnion(found.owners)
    inventory.closed = known
  }

  private func entries(
    _ folder: RelativePath, _ inventory: inout DirectoryInventory
  ) throws -> [DirectoryEntry] {
    try context.checkCancellation()
    context.report { $0.completedCount += 1 }
    do {
      return try directory.list(folder)
    } catch let error as DirectoryError where folder != .root {
      switch error.code {
      // The folder is gone since its parent was listed.
      case .notFound: break
      case .away, .noAnswer: throw error
      case .notADirectory:
        note(
          ForeignName(name: folder.name, reason: .wrongKind), in: folder.parent ?? .root, &inventory
        )
      default:
        inventory.findings.insert(
          VerifyReport.Finding(
            .unreadable, path: folder.description, "The folder cannot be listed.",
            detail: "\(error)"))
      }
      return []
    }
  }

  private func note(
    _ foreign: ForeignName, in folder: RelativePath, _ inventory: inout DirectoryInventory
  ) {
    inventory.findings.insert(
      VerifyReport.Finding(
        foreign.reason.kind, path: Self.path(folder, foreign.name), foreign.reason.sentence))
  }

  private static func path(_ folder: RelativePath, _ name: String) -> String {
    folder == .root ? name : "\(folder)/\(name)"
  }
}

extension ForeignName.Reason {
  /// The kind of finding for a name with this reason.
  var kind: VerifyReport.Finding.Kind {
    switch self {
    case .conflictedCopy: .conflictedCopy
    case .temporary: .temporaryFile
    case .placeholder: .placeholder
    case .backup: .backupFile
    case .hidden: .hiddenFile
    case .system: .systemFile
    case .wrongKind: .wrongKind
    case .unknown: .unknownName
    }
  }

  fileprivate var sentence: String {
    switch self {
    case .conflictedCopy: "A synchronizer has made a conflicted copy."
    case .temporary: "Another program has left an unfinished file."
    case .placeholder: "The file is in the cloud and not on this device."
    case .backup: "A program has left a backup."
    case .hidden: "A hidden file of another program."
    case .system: "An operating system keeps a file here."
    case .wrongKind:
      "A link, a folder or a device is in the place of a file or a folder of DocumentSync."
    case .unknown: "This is not a file of DocumentSync."
    }
  }
}
