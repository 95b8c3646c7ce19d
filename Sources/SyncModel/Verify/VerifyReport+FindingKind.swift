extension VerifyReport.Finding {
  /// The kinds of findings. The raw values are stable: programs may rely on
  /// them. `Documentation/SharedDirectory.md` lists them.
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    // Any file of a shared directory.

    /// The bytes of a file are not the bytes that its author wrote.
    case damaged
    /// A file ends too early.
    case truncated
    /// A newer version of this software wrote the file.
    case newerVersion
    /// A file is not one of ours, or its type does not fit its name.
    case wrongType
    /// A file is intact, but its name has another hash.
    case misnamed
    /// The header of a file names another place than the one where the file is.
    case misplaced
    /// A file is intact, but its content breaks a rule of the format.
    case malformed
    /// A file or a folder cannot be read.
    case unreadable
    /// A file that an interrupted operation of a client may have left.
    case leftover
    /// Users who share the root through its group cannot use a folder or a file.
    case groupCannotWrite

    // Names that are not exactly ours, by their probable origin.

    /// A synchronizer's copy of a file that two sides wrote.
    case conflictedCopy
    /// An unfinished file of another program.
    case temporaryFile
    /// A file in the cloud that this device has not fetched.
    case placeholder
    /// An editor's backup.
    case backupFile
    /// A dotfile.
    case hiddenFile
    /// A file that an operating system leaves in folders.
    case systemFile
    /// An entry that has one of our names but is something else, such as a link.
    case wrongKind
    /// Any other name.
    case unknownName

    // The application, its clients and its documents.

    /// There is no application file.
    case applicationMissing
    /// There are several application files.
    case applicationRivals
    /// The directory belongs to another application.
    case applicationOther
    /// A document belongs to a directory whose application file is missing here.
    case rootMissing
    /// A client has files and no description.
    case clientUndescribed
    /// A document's folder contains neither a generation nor a tombstone.
    case documentEmpty
    /// A generation has a folder, and the file that describes it is missing.
    case generationFileMissing
    /// A generation has a file, and its folder is missing.
    case generationFolderMissing
    /// A generation replaces another one whose file is missing.
    case generationPreviousMissing
    /// A generation was deleted, and some of its files still exist.
    case deletedNotCleared

    // Change sets.

    /// A change set is missing between others, or below them.
    case changeSetMissing
    /// A change set that its author counts as removed still exists.
    case changeSetNotCleared
    /// Two files claim the number of one change set.
    case changeSetClaimedTwice
    /// A change set is intact, but no store can apply it.
    case changeSetRefused
    /// A change set does not continue the one before it.
    case chainBroken
    /// A change set depends on a change set that does not exist.
    case dependencyMissing
    /// A change set depends on a change set with other content than the existing one.
    case dependencyDiffers

    // Segments.

    /// The index of a segment does not fit its change sets.
    case segmentIndex
    /// Two segments contain some of the same change sets, and neither contains all
    /// of the other's.
    case segmentOverlap
    /// A segment contains a change set with other content than its own file
    /// or another segment.
    case segmentDiffers

    // Commands.

    /// The file of a command that its author has announced is missing.
    case commandMissing
    /// Two files claim the number of one command.
    case commandClaimedTwice
    /// A command does not continue the one before it.
    case commandChainBroken

    // Markers.

    /// A marker announces change sets or commands that do not exist.
    case markerAhead
    /// A marker announces change sets or commands, and its client has none in the directory.
    case markerWithoutFiles
    /// Two markers of a client have the same revision.
    case markerClaimedTwice
    /// A marker names another hash than that of the existing file.
    case markerDiffers
    /// A marker lists more change sets of a client as applied than that client has
    /// published.
    case markerAppliedBeyond
    /// A whole store that a marker lists is missing.
    case markerWholeStoreMissing
    /// A segment that a marker lists is missing.
    case markerSegmentMissing

    // Whole stores.

    /// The database in a whole store is damaged.
    case wholeStoreDamaged
    /// The schema in a whole store is not the one that its header names.
    case wholeStoreSchema
    /// A whole store contains other change sets than its header lists.
    case wholeStoreVector
    /// A whole store contains more change sets of a client than the client has published.
    case wholeStoreAhead
    /// A whole store contains data that belongs to one device alone.
    case wholeStorePrivate
    /// No intact whole store contains the change sets that were removed.
    case joinImpossible

    // A store.

    /// SQLite finds the database damaged.
    case databaseDamaged
    /// Rows refer to rows that do not exist.
    case foreignKeysBroken
    /// Rows break a condition of their table.
    case constraintsBroken
    /// A table cannot be synchronized, so it stays on its device.
    case schemaUnsuitable
    /// An edit has more bytes than a change set can carry, so it stays on its device.
    case editTooLarge
    /// Tables of the bookkeeping are missing or wrong.
    case bookkeepingDamaged
    /// A newer version of this software wrote the bookkeeping.
    case bookkeepingNewer
    /// The triggers that capture edits are missing or out of date.
    case triggersOutOfDate
    /// A row is in its table, but the bookkeeping does not know it.
    case rowUnknown
    /// The bookkeeping knows a row that is not in its table.
    case rowMissing
    /// A row has NULL in its key, so it stays on its device.
    case rowWithoutKey
    /// A column looks like a reference, and is not declared as one.
    case referenceUndeclared
    /// A row is in its table, but the bookkeeping has it as deleted.
    case rowDeleted
    /// A row has no valid identity, or shares it with another row.
    case identityAmbiguous
    /// An identity is stored for a row that does not exist.
    case identityOrphaned
    /// The stored stamps of rows cannot be read.
    case stampsDamaged
    /// The stored cells of a hidden row, or of a row of an unknown table, cannot be read.
    case keptRowDamaged
    /// The stored cells of a hidden row, or the index entries for it, are wrong, missing or left
    /// over.
    case keptRowInconsistent
    /// A table shows other rows or values than the merged state requires.
    case shownDiffers
    /// A change set of this store has changed since it was sealed, or does not
    /// continue the one before it.
    case outboxDamaged
    /// A change set that waits in this store has changed since it arrived.
    case inboxDamaged
    /// An entry of the conflict journal cannot be read.
    case journalDamaged
    /// The file with older conflicts is missing, is damaged, or cannot be written.
    case conflictFileUnusable
    /// A record about the directory in the store cannot be read.
    case recordDamaged
    /// The store may have been copied, moved or restored.
    case storeMoved
    /// The set-up of the store is not complete.
    case setUpUnfinished

    // A store compared with its directory.

    /// The shared directory is not reachable.
    case directoryAway
    /// The document or generation of the store is not in the directory, or has been replaced.
    case bindingMissing
    /// A file that this store has published is not in the directory.
    case ownFileMissing
    /// The directory has files of this client that the store has not made.
    case storeBehind
    /// The store's client was retired or removed.
    case storeRetired
    /// The store has applied a change set with other content than the existing one.
    case appliedDiffers
    /// The store has applied more change sets of a client than the client has published
    /// in the directory.
    case directoryBehind
  }
}
