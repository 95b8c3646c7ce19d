extension VerifyFinding {
  /// The kinds of findings. The raw values are stable: programs may go by
  /// them. `Documentation/SharedDirectory.md` tabulates them.
  public enum Kind: String, Hashable, Sendable, Codable, CaseIterable {
    // Any file of a shared directory.

    /// The bytes of a file are not those that were written.
    case damaged
    /// A file ends too early.
    case truncated
    /// A file was written by a newer version of this software.
    case newerVersion
    /// A file is none of ours, or of another type than its name says.
    case wrongType
    /// A file is whole and is not the one that the hash in its name means.
    case misnamed
    /// What a file says of where it belongs is not where it is.
    case misplaced
    /// A file is whole and says something that its format does not allow.
    case malformed
    /// A file or a folder cannot be read.
    case unreadable
    /// A file that an unfinished call of a client may have left.
    case leftover

    // Names that are not exactly ours, by what they look like.

    /// A synchronizer's copy of a file that two sides wrote.
    case conflictedCopy
    /// An unfinished file of another program.
    case temporaryFile
    /// A file that the cloud holds and this device has not fetched.
    case placeholder
    /// An editor's backup.
    case backupFile
    /// A dotfile.
    case hiddenFile
    /// A file that an operating system leaves in folders.
    case systemFile
    /// One of our names, on something of another kind, such as a link.
    case wrongKind
    /// A name of which nothing is known.
    case unknownName

    // The application, its clients and its documents.

    /// There is no application file.
    case applicationMissing
    /// There are several application files.
    case applicationRivals
    /// The directory belongs to another application.
    case applicationOther
    /// A document belongs to a directory whose application file is not here.
    case rootMissing
    /// A client has files and no description.
    case clientUndescribed
    /// A document's folder holds neither a generation nor a tombstone.
    case documentEmpty
    /// A generation has a folder, and the file that describes it is missing.
    case generationFileMissing
    /// A generation's file is there, and its folder is missing.
    case generationFolderMissing
    /// The file of the generation that a generation takes the place of is not
    /// there.
    case generationPreviousMissing
    /// A generation was deleted, and files of it are still there.
    case deletedNotCleared

    // Change sets.

    /// A change set is missing between others, or below them.
    case changeSetMissing
    /// A change set is there that its author has given up.
    case changeSetNotCleared
    /// Two files claim the number of one change set.
    case changeSetClaimedTwice
    /// A change set is whole, and no store can apply it.
    case changeSetRefused
    /// A change set does not continue the one before it.
    case chainBroken
    /// A change set builds on one that is nowhere.
    case dependencyMissing
    /// A change set builds on another content of a change set than is there.
    case dependencyDiffers

    // Segments.

    /// What a segment says of its change sets is not what it holds.
    case segmentIndex
    /// Two segments hold some of the same change sets, and neither holds all
    /// of the other's.
    case segmentOverlap
    /// A segment holds another content of a change set than its loose file,
    /// or than another segment.
    case segmentDiffers

    // Commands.

    /// A command is missing.
    case commandMissing
    /// Two files claim the number of one command.
    case commandClaimedTwice
    /// A command does not continue the one before it.
    case commandChainBroken

    // Markers.

    /// A marker announces change sets or commands that are not there.
    case markerAhead
    /// A marker announces change sets, and none of its client is there.
    case markerWithoutFiles
    /// Two markers of a client have one revision.
    case markerClaimedTwice
    /// A marker names another content of a file than is there.
    case markerDiffers
    /// A marker says that more of a client was applied than that client has
    /// published.
    case markerAppliedBeyond
    /// A whole store that a marker lists is not there.
    case markerWholeStoreMissing
    /// A segment that a marker lists is not there.
    case markerSegmentMissing

    // Whole stores.

    /// The database in a whole store is damaged.
    case wholeStoreDamaged
    /// The schema in a whole store is not the one that it names.
    case wholeStoreSchema
    /// A whole store contains other change sets than it says.
    case wholeStoreVector
    /// A whole store contains more of a client than that has published.
    case wholeStoreAhead
    /// A whole store holds what belongs to one device alone.
    case wholeStorePrivate
    /// No whole store that is whole contains what was cleared away.
    case nobodyCanJoin

    // A store.

    /// SQLite finds the database damaged.
    case databaseDamaged
    /// Rows refer to rows that are not there.
    case foreignKeysBroken
    /// Rows break a condition of their table.
    case constraintsBroken
    /// The application has a schema that cannot be synchronized.
    case schemaUnsuitable
    /// Tables of the bookkeeping are missing, or other than they should be.
    case bookkeepingDamaged
    /// The bookkeeping was written by a newer version of this software.
    case bookkeepingNewer
    /// The triggers that capture edits are missing or out of date.
    case triggersOutOfDate
    /// A row is in its table, and the bookkeeping does not know it.
    case rowUnknown
    /// The bookkeeping knows a row that is not in its table.
    case rowMissing
    /// A row has NULL in its key, and so stays on its device.
    case rowWithoutKey
    /// A row is in its table, and the bookkeeping says that it is deleted.
    case rowDeleted
    /// A row has no identity of its own, or shares it with another.
    case identityAmbiguous
    /// An identity is kept for a row that is nowhere.
    case identityOrphaned
    /// What is remembered of when rows were edited cannot be read.
    case stampsDamaged
    /// A row that is kept and not shown cannot be read.
    case keptRowDamaged
    /// What a kept row is to be found by is not what it says.
    case keptRowInconsistent
    /// What is shown is not what follows from what is known.
    case shownDiffers
    /// A change set that this store made is not as it was sealed, or does not
    /// continue the one before it.
    case outboxDamaged
    /// A change set that waits in this store is not as it came.
    case inboxDamaged
    /// An entry of the conflict journal cannot be read.
    case journalDamaged
    /// Something that the store remembers of the directory cannot be read.
    case recordDamaged
    /// The store may have been copied, moved or restored.
    case storeMoved

    // A store against its directory.

    /// The shared directory is not there.
    case directoryAway
    /// What the store is bound to is not in the directory, or no longer
    /// counts.
    case bindingMissing
    /// A file that this store has published is not in the directory.
    case ownFileMissing
    /// The directory knows more of this client than the store.
    case storeBehind
    /// The client that the store is was retired or removed.
    case storeRetired
    /// The store has applied another content of a change set than is there.
    case appliedDiffers
    /// The store has applied more of a client than the directory has ever
    /// had.
    case directoryBehind
  }
}
