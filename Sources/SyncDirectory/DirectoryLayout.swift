import SyncModel

/// The paths of the shared directory: every path is built here.
///
/// Apart from fixed names, paths consist of identifiers, numbers and hash fragments. They contain
/// nothing that a user typed or that was read from a file.
package enum DirectoryLayout {
  /// README.txt
  package static let readme = RelativePath(trusted: ["README.txt"])
  /// The folder for key slots.
  package static let encryption = folder(.encryption)
  /// The folder in which clients describe themselves.
  package static let clientDevices = folder(.clientDevices)
  /// The folder of unfinished files.
  package static let temporary = folder(.temporary)
  /// The folder of the documents.
  package static let documents = folder(.documents)

  /// Returns the path of an application file.
  package static func path(of name: ApplicationName) -> RelativePath {
    RelativePath(trusted: [name.description])
  }

  /// Returns the path of a client's description of itself.
  package static func path(of name: ClientDeviceName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// Returns the path of a client's removal.
  package static func path(of name: ClientRemovalName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// Returns the path of an entry of ``clientDevices``.
  package static func path(of name: ClientEntryName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// Returns the folder of a client's unfinished files.
  package static func temporary(of client: ClientIdentifier) -> RelativePath {
    temporary.appending(trusted: client.description)
  }

  private static func folder(_ folder: RootName.Folder) -> RelativePath {
    RelativePath(trusted: [folder.rawValue])
  }

  /// The paths of one document.
  package struct Document: Hashable, Sendable {
    /// The document.
    package var name: DocumentName
    /// Creates the paths of a document.
    package init(_ name: DocumentName) { self.name = name }

    /// The document's folder, with names of ``DocumentEntryName``.
    package var folder: RelativePath {
      DirectoryLayout.documents.appending(trusted: name.description)
    }

    /// Returns the path of a generation file.
    package func path(of name: GenerationName) -> RelativePath {
      folder.appending(trusted: name.description)
    }

    /// Returns the path of a tombstone.
    package func path(of name: DeletedName) -> RelativePath {
      folder.appending(trusted: name.description)
    }

    /// Returns the paths of one generation of the document.
    package func generation(_ key: IntegrityKey) -> Generation {
      Generation(document: self, key: key)
    }
  }

  /// The paths of one generation of a document.
  package struct Generation: Hashable, Sendable {
    /// The paths of the document that it belongs to.
    package var document: Document
    /// The key of this generation.
    package var key: IntegrityKey

    /// Creates the paths of a generation.
    package init(document: Document, key: IntegrityKey) {
      self.document = document
      self.key = key
    }

    /// The generation's folder, with names of ``GenerationEntryName``.
    package var folder: RelativePath { document.folder.appending(trusted: key.description) }

    /// The folder of the clients' markers, with names of ``MarkerName``.
    package var recentSyncs: RelativePath { folder(.recentSyncs) }
    /// The folder that has a subfolder for each client that has published change sets.
    package var syncChanges: RelativePath { folder(.syncChanges) }
    /// The folder that has a subfolder for each client that has published commands.
    package var syncCommands: RelativePath { folder(.syncCommands) }
    /// The folder that has a subfolder for each client that has uploaded the whole store.
    package var wholeStores: RelativePath { folder(.wholeStore) }
    /// The folder of large values.
    package var assets: RelativePath { folder(.assets) }

    /// Returns the folder of a client's change sets, with names of ``ChangeFileName``.
    package func syncChanges(of client: ClientIdentifier) -> RelativePath {
      syncChanges.appending(trusted: client.description)
    }

    /// Returns the folder of a client's commands, with names of ``CommandName``.
    package func syncCommands(of client: ClientIdentifier) -> RelativePath {
      syncCommands.appending(trusted: client.description)
    }

    /// Returns the folder of a client's whole stores, with names of ``WholeStoreName``.
    package func wholeStores(of client: ClientIdentifier) -> RelativePath {
      wholeStores.appending(trusted: client.description)
    }

    /// Returns the path of a marker.
    package func path(of name: MarkerName) -> RelativePath {
      recentSyncs.appending(trusted: name.description)
    }

    /// Returns the path of a change set.
    package func path(of name: ChangeSetName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// Returns the path of a segment.
    package func path(of name: SegmentName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// Returns the path of a change set or a segment.
    package func path(of name: ChangeFileName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// Returns the path of a command.
    package func path(of name: CommandName, by client: ClientIdentifier) -> RelativePath {
      syncCommands(of: client).appending(trusted: name.description)
    }

    /// Returns the path of a whole store.
    package func path(of name: WholeStoreName, by client: ClientIdentifier) -> RelativePath {
      wholeStores(of: client).appending(trusted: name.description)
    }

    private func folder(_ name: GenerationEntryName) -> RelativePath {
      folder.appending(trusted: name.rawValue)
    }
  }
}
