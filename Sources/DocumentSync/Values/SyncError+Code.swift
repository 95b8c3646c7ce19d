extension SyncError.Code {
  // The operation itself.

  /// The operation was cancelled.
  public static let cancelled = Self(rawValue: "cancelled")
  /// DocumentSync itself has a fault.
  public static let internalFault = Self(rawValue: "internalFault")

  // The store.

  /// Another process, or another manager, is working on the store.
  public static let storeInUse = Self(rawValue: "storeInUse")
  /// There is no database at the path.
  public static let storeMissing = Self(rawValue: "storeMissing")
  /// The file is not an SQLite database.
  public static let notADatabase = Self(rawValue: "notADatabase")
  /// The database is damaged.
  public static let storeDamaged = Self(rawValue: "storeDamaged")
  /// The store is under sync already.
  public static let alreadyUnderSync = Self(rawValue: "alreadyUnderSync")
  /// The store is not under sync.
  public static let notUnderSync = Self(rawValue: "notUnderSync")
  /// The set-up of the store began and did not finish.
  public static let setUpUnfinished = Self(rawValue: "setUpUnfinished")
  /// The store is inside the shared directory, where other programs copy it.
  public static let storeInDirectory = Self(rawValue: "storeInDirectory")
  /// The schema, or the configuration for it, cannot be synchronized.
  public static let storeUnsuitable = Self(rawValue: "storeUnsuitable")
  /// Another program kept the database locked for too long.
  public static let storeBusy = Self(rawValue: "storeBusy")
  /// The store was closed. Open it again.
  public static let storeClosed = Self(rawValue: "storeClosed")
  /// The store or its folder cannot be written to.
  public static let storeNotWritable = Self(rawValue: "storeNotWritable")
  /// The store cannot be read.
  public static let storeNotReadable = Self(rawValue: "storeNotReadable")
  /// The store has edits that are not published.
  public static let unpublishedEdits = Self(rawValue: "unpublishedEdits")
  /// A file exists where the call would write one.
  public static let fileExists = Self(rawValue: "fileExists")
  /// Something other than a file exists where the call would write one.
  public static let notAFile = Self(rawValue: "notAFile")
  /// The local disk is full.
  public static let noLocalSpace = Self(rawValue: "noLocalSpace")
  /// A local file could not be read or written.
  public static let localFile = Self(rawValue: "localFile")
  /// The store has not applied a change set, or the shared directory does not have any more what
  /// there was before it.
  public static let changeSetUnavailable = Self(rawValue: "changeSetUnavailable")
  /// The journal has no conflict with that number.
  public static let noSuchConflict = Self(rawValue: "noSuchConflict")
  /// The conflict to answer was decided before, or the conflict to restore is
  /// an open question or was restored before.
  public static let conflictNotOpen = Self(rawValue: "conflictNotOpen")
  /// A constraint, or the state of a row, does not permit the edit.
  public static let editRefused = Self(rawValue: "editRefused")
  /// A device's name is too long, or has characters that lists cannot show.
  public static let nameUnsuitable = Self(rawValue: "nameUnsuitable")
  /// A command's name or payload is too long.
  public static let commandTooLarge = Self(rawValue: "commandTooLarge")
  /// A policy names a table or a column that is not synchronized.
  public static let policyUnsuitable = Self(rawValue: "policyUnsuitable")
  /// SQLite or the store failed in another way.
  public static let storeFailed = Self(rawValue: "storeFailed")

  // The shared directory.

  /// The shared directory is not there or does not answer.
  public static let directoryAway = Self(rawValue: "directoryAway")
  /// The path that should be the shared directory is not a folder.
  public static let notADirectory = Self(rawValue: "notADirectory")
  /// The shared directory cannot be read.
  public static let directoryNotReadable = Self(rawValue: "directoryNotReadable")
  /// The shared directory cannot be written to.
  public static let directoryNotWritable = Self(rawValue: "directoryNotWritable")
  /// The shared directory is full.
  public static let noSharedSpace = Self(rawValue: "noSharedSpace")
  /// Reading or writing in the shared directory failed in another way.
  public static let directoryFailed = Self(rawValue: "directoryFailed")

  // The application and the document.

  /// The application that the store is bound to is not in the directory.
  public static let rootMissing = Self(rawValue: "rootMissing")
  /// The shared directory holds no application.
  public static let applicationMissing = Self(rawValue: "applicationMissing")
  /// The shared directory belongs to another application.
  public static let otherApplication = Self(rawValue: "otherApplication")
  /// The shared directory is not the one that the store is bound to.
  public static let otherRoot = Self(rawValue: "otherRoot")
  /// The store, or a file in the directory, needs a newer version of this
  /// software.
  public static let newerVersionNeeded = Self(rawValue: "newerVersionNeeded")
  /// The document is not in the directory.
  public static let documentMissing = Self(rawValue: "documentMissing")
  /// A document with that identifier exists already.
  public static let documentExists = Self(rawValue: "documentExists")
  /// The document was deleted.
  public static let documentDeleted = Self(rawValue: "documentDeleted")
  /// The document was deleted and created again under the same name.
  public static let documentReplaced = Self(rawValue: "documentReplaced")
  /// This client was removed from the document.
  public static let clientRemoved = Self(rawValue: "clientRemoved")
  /// The call would lose data that exists nowhere else, and the caller has not
  /// confirmed that.
  public static let confirmationNeeded = Self(rawValue: "confirmationNeeded")
  /// The client is not in the directory.
  public static let clientMissing = Self(rawValue: "clientMissing")
  /// The decision cannot be carried out.
  public static let decisionUnsuitable = Self(rawValue: "decisionUnsuitable")
  /// The directory has several documents, and the call names none.
  public static let documentAmbiguous = Self(rawValue: "documentAmbiguous")
  /// The generation that the store is bound to is not in the directory.
  public static let generationMissing = Self(rawValue: "generationMissing")
  /// Another generation of the document counts now.
  public static let generationReplaced = Self(rawValue: "generationReplaced")
  /// Another state of this store published under its client identifier.
  public static let forkedClient = Self(rawValue: "forkedClient")
  /// The client is not a member of the document.
  public static let clientUnknown = Self(rawValue: "clientUnknown")
  /// This client was retired, because the other devices had not seen it for
  /// long.
  public static let clientRetired = Self(rawValue: "clientRetired")
  /// The directory contains no usable whole store.
  public static let wholeStoreMissing = Self(rawValue: "wholeStoreMissing")
  /// A file in the directory is not what it should be.
  public static let malformedFile = Self(rawValue: "malformedFile")

  // Models outside of SQLite, which DocumentSyncModels synchronizes.

  /// The schema of a model cannot be that of a mirror.
  public static let schemaUnsuitable = Self(rawValue: "schemaUnsuitable")
  /// The adapter of a model failed; ``SyncError/underlying`` is its error.
  public static let adapterFailed = Self(rawValue: "adapterFailed")
  /// The adapter of a model called its mirror, which waits for the adapter.
  public static let calledWithin = Self(rawValue: "calledWithin")

  /// How a caller should treat an error with this code.
  public var classification: SyncError.Classification {
    switch self {
    // A mount point without its mount is an empty folder.
    case .directoryAway, .applicationMissing, .rootMissing, .generationMissing: .directoryAway
    case .storeInUse, .storeBusy: .busy
    case .storeInDirectory, .alreadyUnderSync, .setUpUnfinished, .unpublishedEdits, .fileExists,
      .notAFile, .otherApplication, .otherRoot, .documentExists, .documentDeleted,
      .generationReplaced,
      .documentReplaced, .clientRemoved, .confirmationNeeded, .decisionUnsuitable, .forkedClient,
      .newerVersionNeeded, .conflictNotOpen, .editRefused,
      .clientRetired:
      .refused
    default: .failed
    }
  }
}
