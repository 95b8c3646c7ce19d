import SyncModel

// The names of ours in folders with several kinds of names.

/// A name of ours in the root.
package enum RootName: DirectoryName {
  /// README.txt
  case readme
  /// An application file. There are several if two clients created the application without seeing
  /// each other's file.
  case application(ApplicationName)
  /// One of the fixed folders.
  case folder(Folder)

  /// The fixed folders.
  package enum Folder: String, Hashable, Sendable {
    /// Key slots.
    case encryption = "Encryption"
    /// The clients' descriptions of themselves.
    case clientDevices = "ClientDevices"
    /// Unfinished files.
    case temporary = "Temporary"
    /// A folder for each document.
    case documents = "Documents"
  }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard description.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    if description == "README.txt" {
      self = .readme
    } else if let folder = Folder(rawValue: description) {
      self = .folder(folder)
    } else if let application = ApplicationName(description) {
      self = .application(application)
    } else {
      return nil
    }
  }

  /// The name.
  package var description: String {
    switch self {
    case .readme: "README.txt"
    case .application(let name): name.description
    case .folder(let folder): folder.rawValue
    }
  }

  /// Whether the name is that of a folder.
  package var isFolder: Bool {
    if case .folder = self { true } else { false }
  }
}

/// A name of ours in a document's folder.
package enum DocumentEntryName: DirectoryName {
  /// The description of a generation.
  case generation(GenerationName)
  /// A tombstone.
  case deleted(DeletedName)
  /// The folder of a generation.
  case life(IntegrityKey)

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    if let name = GenerationName(description) {
      self = .generation(name)
    } else if let name = DeletedName(description) {
      self = .deleted(name)
    } else if let key = IntegrityKey(description) {
      self = .life(key)
    } else {
      return nil
    }
  }

  /// The name.
  package var description: String {
    switch self {
    case .generation(let name): name.description
    case .deleted(let name): name.description
    case .life(let key): key.description
    }
  }

  /// Whether the name is that of a folder.
  package var isFolder: Bool {
    if case .life = self { true } else { false }
  }
}

/// A name of ours in the folder of a generation.
package enum GenerationEntryName: String, DirectoryName {
  /// The clients' markers.
  case recentSyncs = "RecentSyncs"
  /// The clients' change sets.
  case syncChanges = "SyncChanges"
  /// The clients' commands.
  case syncCommands = "SyncCommands"
  /// The clients' whole stores.
  case wholeStore = "WholeStore"
  /// Large values.
  case assets = "Assets"

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard description.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    self.init(rawValue: description)
  }

  /// The name.
  package var description: String { rawValue }
  /// True: all are folders.
  package var isFolder: Bool { true }
}

/// A name of ours in SyncChanges/<client>.
package enum ChangeFileName: DirectoryName {
  /// A file with one change set.
  case changeSet(ChangeSetName)
  /// A file with several change sets.
  case segment(SegmentName)

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    if let name = ChangeSetName(description) {
      self = .changeSet(name)
    } else if let name = SegmentName(description) {
      self = .segment(name)
    } else {
      return nil
    }
  }

  /// The name.
  package var description: String {
    switch self {
    case .changeSet(let name): name.description
    case .segment(let name): name.description
    }
  }

  /// The numbers of its change sets.
  package var numbers: ClosedRange<UInt64> {
    switch self {
    case .changeSet(let name): name.number...name.number
    case .segment(let name): name.numbers
    }
  }
}
