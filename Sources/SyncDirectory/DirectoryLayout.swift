import SyncModel

/// Every path in the shared directory.
///
/// Paths consist of identifiers, numbers and hash fragments alone; they contain nothing
/// that a user typed and nothing that was read from a file.
public enum DirectoryLayout {
  /// README.txt
  public static let readme = RelativePath(trusted: ["README.txt"])
  /// The folder of key slots.
  public static let encryption = folder(.encryption)
  /// The folder in which clients describe themselves.
  public static let clientDevices = folder(.clientDevices)
  /// The folder of unfinished files.
  public static let temporary = folder(.temporary)
  /// The folder of the documents.
  public static let documents = folder(.documents)

  /// An application file.
  public static func path(of name: ApplicationName) -> RelativePath {
    RelativePath(trusted: [name.description])
  }

  /// A client's description of itself.
  public static func path(of name: ClientDeviceName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// The removal of a client.
  public static func path(of name: ClientRemovalName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// An entry of ``clientDevices``.
  public static func path(of name: ClientEntryName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// The unfinished files of a client.
  public static func temporary(of client: ClientIdentifier) -> RelativePath {
    temporary.appending(trusted: client.description)
  }

  private static func folder(_ folder: RootName.Folder) -> RelativePath {
    RelativePath(trusted: [folder.rawValue])
  }

  /// The paths of one document.
  public struct Document: Hashable, Sendable {
    /// The document.
    public var name: DocumentName
    /// The paths of `name`.
    public init(_ name: DocumentName) { self.name = name }

    /// The document's folder; holds ``DocumentEntryName``.
    public var folder: RelativePath {
      DirectoryLayout.documents.appending(trusted: name.description)
    }

    /// The description of a generation.
    public func path(of name: GenerationName) -> RelativePath {
      folder.appending(trusted: name.description)
    }

    /// A tombstone.
    public func path(of name: DeletedName) -> RelativePath {
      folder.appending(trusted: name.description)
    }

    /// The paths of one generation of the document.
    public func generation(_ key: IntegrityKey) -> Generation {
      Generation(document: self, key: key)
    }
  }

  /// The paths of one generation of a document.
  public struct Generation: Hashable, Sendable {
    /// The paths of the document that it belongs to.
    public var document: Document
    /// The key of this generation.
    public var key: IntegrityKey

    /// The paths of the generation with a key.
    public init(document: Document, key: IntegrityKey) {
      self.document = document
      self.key = key
    }

    /// The folder; holds ``GenerationEntryName``.
    public var folder: RelativePath { document.folder.appending(trusted: key.description) }

    /// The clients' markers; holds ``MarkerName``.
    public var recentSyncs: RelativePath { folder(.recentSyncs) }
    /// A folder for each client that has published change sets.
    public var syncChanges: RelativePath { folder(.syncChanges) }
    /// A folder for each client that has published commands.
    public var syncCommands: RelativePath { folder(.syncCommands) }
    /// A folder for each client that has uploaded the whole store.
    public var wholeStores: RelativePath { folder(.wholeStore) }
    /// Large values.
    public var assets: RelativePath { folder(.assets) }

    /// One client's change sets; holds ``ChangeFileName``.
    public func syncChanges(of client: ClientIdentifier) -> RelativePath {
      syncChanges.appending(trusted: client.description)
    }

    /// One client's commands; holds ``CommandName``.
    public func syncCommands(of client: ClientIdentifier) -> RelativePath {
      syncCommands.appending(trusted: client.description)
    }

    /// One client's whole stores; holds ``WholeStoreName``.
    public func wholeStores(of client: ClientIdentifier) -> RelativePath {
      wholeStores.appending(trusted: client.description)
    }

    /// A marker.
    public func path(of name: MarkerName) -> RelativePath {
      recentSyncs.appending(trusted: name.description)
    }

    /// A change set.
    public func path(of name: ChangeSetName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// A segment.
    public func path(of name: SegmentName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// A change set or a segment.
    public func path(of name: ChangeFileName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// A command.
    public func path(of name: CommandName, by client: ClientIdentifier) -> RelativePath {
      syncCommands(of: client).appending(trusted: name.description)
    }

    /// A whole store.
    public func path(of name: WholeStoreName, by client: ClientIdentifier) -> RelativePath {
      wholeStores(of: client).appending(trusted: name.description)
    }

    private func folder(_ name: GenerationEntryName) -> RelativePath {
      folder.appending(trusted: name.rawValue)
    }
  }
}
