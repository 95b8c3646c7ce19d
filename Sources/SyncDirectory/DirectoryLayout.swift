import SyncModel

/// Every path in the shared directory.
///
/// Paths consist of identifiers, numbers and hash fragments alone; they contain nothing
/// that a user typed and nothing that was read from a file.
package enum DirectoryLayout {
  /// README.txt
  package static let readme = RelativePath(trusted: ["README.txt"])
  /// The folder of key slots.
  package static let encryption = folder(.encryption)
  /// The folder in which clients describe themselves.
  package static let clientDevices = folder(.clientDevices)
  /// The folder of unfinished files.
  package static let temporary = folder(.temporary)
  /// The folder of the documents.
  package static let documents = folder(.documents)

  /// An application file.
  package static func path(of name: ApplicationName) -> RelativePath {
    RelativePath(trusted: [name.description])
  }

  /// A client's description of itself.
  package static func path(of name: ClientDeviceName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// The removal of a client.
  package static func path(of name: ClientRemovalName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// An entry of ``clientDevices``.
  package static func path(of name: ClientEntryName) -> RelativePath {
    clientDevices.appending(trusted: name.description)
  }

  /// The unfinished files of a client.
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
    /// The paths of `name`.
    package init(_ name: DocumentName) { self.name = name }

    /// The document's folder; holds ``DocumentEntryName``.
    package var folder: RelativePath {
      DirectoryLayout.documents.appending(trusted: name.description)
    }

    /// The description of a generation.
    package func path(of name: GenerationName) -> RelativePath {
      folder.appending(trusted: name.description)
    }

    /// A tombstone.
    package func path(of name: DeletedName) -> RelativePath {
      folder.appending(trusted: name.description)
    }

    /// The paths of one generation of the document.
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

    /// The paths of the generation with a key.
    package init(document: Document, key: IntegrityKey) {
      self.document = document
      self.key = key
    }

    /// The folder; holds ``GenerationEntryName``.
    package var folder: RelativePath { document.folder.appending(trusted: key.description) }

    /// The clients' markers; holds ``MarkerName``.
    package var recentSyncs: RelativePath { folder(.recentSyncs) }
    /// A folder for each client that has published change sets.
    package var syncChanges: RelativePath { folder(.syncChanges) }
    /// A folder for each client that has published commands.
    package var syncCommands: RelativePath { folder(.syncCommands) }
    /// A folder for each client that has uploaded the whole store.
    package var wholeStores: RelativePath { folder(.wholeStore) }
    /// Large values.
    package var assets: RelativePath { folder(.assets) }

    /// One client's change sets; holds ``ChangeFileName``.
    package func syncChanges(of client: ClientIdentifier) -> RelativePath {
      syncChanges.appending(trusted: client.description)
    }

    /// One client's commands; holds ``CommandName``.
    package func syncCommands(of client: ClientIdentifier) -> RelativePath {
      syncCommands.appending(trusted: client.description)
    }

    /// One client's whole stores; holds ``WholeStoreName``.
    package func wholeStores(of client: ClientIdentifier) -> RelativePath {
      wholeStores.appending(trusted: client.description)
    }

    /// A marker.
    package func path(of name: MarkerName) -> RelativePath {
      recentSyncs.appending(trusted: name.description)
    }

    /// A change set.
    package func path(of name: ChangeSetName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// A segment.
    package func path(of name: SegmentName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// A change set or a segment.
    package func path(of name: ChangeFileName, by client: ClientIdentifier) -> RelativePath {
      syncChanges(of: client).appending(trusted: name.description)
    }

    /// A command.
    package func path(of name: CommandName, by client: ClientIdentifier) -> RelativePath {
      syncCommands(of: client).appending(trusted: name.description)
    }

    /// A whole store.
    package func path(of name: WholeStoreName, by client: ClientIdentifier) -> RelativePath {
      wholeStores(of: client).appending(trusted: name.description)
    }

    private func folder(_ name: GenerationEntryName) -> RelativePath {
      folder.appending(trusted: name.rawValue)
    }
  }
}
