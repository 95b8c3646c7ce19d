extension Remedy {
  /// Something that the user or the application can do. Later versions may add actions.
  public enum Action: Hashable, Sendable {
    /// Put the database under sync, as a new document.
    case create
    /// Get the document as a database on this device.
    case join
    /// Get the document again. The existing file stays as a backup, and its unsent edits are sent.
    case joinReplacing
    /// Get the document and merge the rows of the existing file.
    case joinMerging
    /// Send the edits of this device and apply those of the other devices.
    case synchronize
    /// Synchronize, and write every missing or damaged file of this device again.
    case synchronizeThoroughly
    /// Synchronize as a new device after a removal.
    case synchronizeRejoining
    /// Create a deleted document again from this database.
    case synchronizeRecreating
    /// Merge this database into the document that was created in place of its own.
    case synchronizeMerging
    /// Start the document again from this database.
    case reset
    /// Upload the whole database.
    case upload
    /// Check the database and the shared directory.
    case verify
    /// Take the database out of sync.
    case leave
    /// Take the database out of sync without telling the other devices.
    case leaveAbandoning
    /// Remove another device from the document.
    case removeClient
    /// Remove the document from the shared directory.
    case deleteDocument
    /// Look at the devices of the document.
    case listClients
    /// Look at the documents of the shared directory.
    case listDocuments
    /// Look at the change sets that this device has made or applied.
    case listChangeSets
    /// Look at the journal of conflicts.
    case listConflicts
    /// Answer the question of a conflict.
    case answerConflict(Int64)
    /// Put back the value that lost a conflict.
    case restoreConflict(Int64)
    /// Keep a table or a column out of sync.
    case exclude(SQLName, column: SQLName? = nil)
    /// Choose how the rows of a table are identified.
    case identify(SQLName)
    /// Identify the rows of a table by its primary key.
    case identifyByPrimaryKey(SQLName)
  }
}

extension Remedy.Action {
  /// The name of the action, for programs.
  public var code: String {
    switch self {
    case .create: "create"
    case .join: "join"
    case .joinReplacing: "joinReplacing"
    case .joinMerging: "joinMerging"
    case .synchronize: "synchronize"
    case .synchronizeThoroughly: "synchronizeThoroughly"
    case .synchronizeRejoining: "synchronizeRejoining"
    case .synchronizeRecreating: "synchronizeRecreating"
    case .synchronizeMerging: "synchronizeMerging"
    case .reset: "reset"
    case .upload: "upload"
    case .verify: "verify"
    case .leave: "leave"
    case .leaveAbandoning: "leaveAbandoning"
    case .removeClient: "removeClient"
    case .deleteDocument: "deleteDocument"
    case .listClients: "listClients"
    case .listDocuments: "listDocuments"
    case .listChangeSets: "listChangeSets"
    case .listConflicts: "listConflicts"
    case .answerConflict: "answerConflict"
    case .restoreConflict: "restoreConflict"
    case .exclude: "exclude"
    case .identify: "identify"
    case .identifyByPrimaryKey: "identifyByPrimaryKey"
    }
  }

  /// A title for people, for applications that have none of their own.
  public var title: String {
    switch self {
    case .create: "Put under sync"
    case .join: "Join the document"
    case .joinReplacing: "Join the document, replacing the file"
    case .joinMerging: "Join the document, merging the file"
    case .synchronize: "Synchronize"
    case .synchronizeThoroughly: "Synchronize thoroughly"
    case .synchronizeRejoining: "Synchronize as a new device"
    case .synchronizeRecreating: "Create the document again"
    case .synchronizeMerging: "Merge into the other document"
    case .reset: "Start the document again"
    case .upload: "Upload the whole database"
    case .verify: "Verify"
    case .leave: "Leave the document"
    case .leaveAbandoning: "Leave without telling the other devices"
    case .removeClient: "Remove the device"
    case .deleteDocument: "Delete the document"
    case .listClients: "List the devices"
    case .listDocuments: "List the documents"
    case .listChangeSets: "List the change sets"
    case .listConflicts: "List the conflicts"
    case .answerConflict(let number): "Answer conflict \(number)"
    case .restoreConflict(let number): "Restore conflict \(number)"
    case .exclude(let table, let column):
      "Exclude \(table)" + (column.map { ".\($0)" } ?? "")
    case .identify(let table): "Identity of \(table)"
    case .identifyByPrimaryKey(let table): "Identify \(table) by its primary key"
    }
  }
}
