extension VerifyReport.Finding.Kind {
  /// The usual severity of a finding of this kind.
  public var severity: VerifyReport.Finding.Severity {
    switch self {
    case .leftover, .conflictedCopy, .temporaryFile, .backupFile, .hiddenFile, .systemFile,
      .unknownName, .applicationRivals, .deletedNotCleared, .changeSetNotCleared, .segmentOverlap,
      .identityOrphaned, .storeMoved, .rowWithoutKey, .referenceUndeclared, .schemaUnsuitable,
      .editTooLarge:
      .note
    case .truncated, .newerVersion, .placeholder, .clientUndescribed, .documentEmpty,
      .generationFileMissing, .generationFolderMissing, .changeSetMissing, .dependencyMissing,
      .commandMissing, .markerAhead, .markerWithoutFiles, .markerAppliedBeyond,
      .markerWholeStoreMissing, .markerSegmentMissing, .generationPreviousMissing,
      .wholeStoreAhead, .bookkeepingNewer, .triggersOutOfDate,
      .directoryAway, .directoryBehind, .storeBehind, .storeRetired, .setUpUnfinished,
      .groupCannotWrite:
      .waiting
    default: .error
    }
  }

  /// The usual remedy for a finding of this kind, a sentence for the user.
  public var remedy: Remedy {
    switch self {
    case .damaged, .misnamed, .malformed, .truncated, .wrongType, .misplaced, .unreadable,
      .newerVersion, .leftover, .groupCannotWrite:
      fileRemedy
    case .conflictedCopy, .temporaryFile, .placeholder, .backupFile, .hiddenFile, .systemFile,
      .wrongKind, .unknownName:
      nameRemedy
    case .applicationMissing, .applicationRivals, .applicationOther, .rootMissing,
      .clientUndescribed, .documentEmpty, .generationFileMissing, .generationFolderMissing,
      .generationPreviousMissing, .deletedNotCleared:
      documentRemedy
    case .changeSetMissing, .changeSetNotCleared, .changeSetClaimedTwice, .changeSetRefused,
      .chainBroken,
      .dependencyMissing, .dependencyDiffers, .segmentIndex, .segmentOverlap, .segmentDiffers,
      .commandMissing, .commandClaimedTwice, .commandChainBroken:
      changeRemedy
    case .markerAhead, .markerWithoutFiles, .markerClaimedTwice, .markerDiffers,
      .markerAppliedBeyond, .markerWholeStoreMissing, .markerSegmentMissing, .wholeStoreDamaged,
      .wholeStoreSchema,
      .wholeStoreVector, .wholeStoreAhead, .wholeStorePrivate, .joinImpossible:
      markerRemedy
    default: storeRemedy
    }
  }

  private static let putBack: Remedy =
    "let its author run \(elsewhere: .synchronizeThoroughly), which puts back its own files"

  private var fileRemedy: Remedy {
    switch self {
    case .truncated:
      "Wait until the shared directory has brought the rest of it. If it has, \(Self.putBack)."
    case .newerVersion: "Update DocumentSync on this device."
    case .wrongType, .misplaced:
      "Move the file out of the shared directory. If it is missing then, \(Self.putBack)."
    case .groupCannotWrite: "Give the group permission to read and write the shared directory."
    case .unreadable: "Check the permissions, the connection and the disk, then verify again."
    case .leftover:
      "You need not do anything: that client removes it at its next synchronization, and no other device does. "
        + "If it is gone, the file may be removed."
    case .malformed:
      "Update DocumentSync on its author's device, then run \(elsewhere: .upload) there, so that others "
        + "can join without the file."
    default: "To mend it, \(Self.putBack)."
    }
  }

  private var nameRemedy: Remedy {
    switch self {
    case .conflictedCopy:
      "Make sure that nothing but the synchronizer touches the shared directory. DocumentSync "
        + "ignores the copy."
    case .placeholder:
      "Have the cloud's program fetch the file, and keep the folder on this device."
    case .wrongKind:
      "Move away what stands there. If one of our files is missing then, \(Self.putBack)."
    default: "You need not do anything: DocumentSync ignores it."
    }
  }

  private var documentRemedy: Remedy {
    switch self {
    case .applicationMissing:
      "Check that this is the shared directory and that it has arrived completely. If the file is "
        + "lost, run \(elsewhere: .synchronizeThoroughly) on a device that has a document of it."
    case .applicationRivals:
      "You need not do anything: the one with the lowest identifier counts on every device."
    case .applicationOther: "Use the directory of this application."
    case .rootMissing:
      "Check that this is the shared directory of the document and that it has arrived completely. "
        + "If it is, restore the file from another device's copy of the directory. If the document's "
        + "folder was copied here from another directory, move it away."
    case .clientUndescribed:
      "Wait until the shared directory has arrived. If it has, let that device run "
        + "\(elsewhere: .synchronizeThoroughly), which writes the description again. The device's name is not "
        + "known until then; nothing else depends on it."
    case .documentEmpty, .generationFolderMissing:
      "Wait until the shared directory has arrived. If it has, restore what is missing from another "
        + "device's copy of the directory."
    case .generationFileMissing:
      "Wait until the shared directory has arrived. If it has, run \(elsewhere: .synchronizeThoroughly) on a "
        + "device that has the document, which writes the file again; without it the folder is not "
        + "used."
    case .generationPreviousMissing:
      "Wait until the shared directory has arrived. If it has, restore the file of the generation "
        + "before from another device's copy of the directory: without it the devices that are "
        + "still in it do not go over."
    default:
      "You need not do anything: no device reads them. To free their space, remove the folder."
    }
  }

  private var changeRemedy: Remedy {
    switch self {
    case .changeSetMissing, .dependencyMissing, .commandMissing:
      "Wait until the shared directory has arrived. If it has, \(Self.putBack), or uploads a whole "
        + "store in place of those that it has no more."
    case .changeSetNotCleared:
      "You need not do anything: its author removes it at its next vacuum."
    case .changeSetClaimedTwice, .commandClaimedTwice:
      "Sync every copy of the author's store: a copied or restored store becomes a device of its "
        + "own. The file of the lower hash counts."
    case .changeSetRefused:
      "Update DocumentSync on this device and on its author's. If it stays, remove that client with "
        + "\(.removeClient): its device goes on as a new one."
    case .chainBroken, .commandChainBroken, .dependencyDiffers:
      "Sync every copy of the author's store. If a file was copied here from another directory, "
        + "move it away and \(Self.putBack)."
    case .segmentOverlap:
      "You need not do anything: the next compaction of their author joins them."
    default:
      "Move the segment out of the shared directory, and \(Self.putBack); or have a device that has "
        + "the document run \(elsewhere: .upload)."
    }
  }

  private var markerRemedy: Remedy {
    switch self {
    case .markerAhead, .markerWithoutFiles, .markerAppliedBeyond, .wholeStoreAhead:
      "Wait until the shared directory has arrived. If it has, let the device that the files belong "
        + "to run \(elsewhere: .synchronizeThoroughly)."
    case .markerClaimedTwice:
      "Sync every copy of that device's store: a copied or restored store becomes a device of its "
        + "own."
    case .markerDiffers:
      "Sync every copy of the store of the device whose files are meant; it may have been restored "
        + "from a backup."
    case .markerSegmentMissing:
      "Wait until the shared directory has arrived. If it has, \(Self.putBack), or uploads a whole "
        + "store in place of those that it has no more."
    case .markerWholeStoreMissing, .joinImpossible:
      "Wait until the shared directory has arrived. If it has, run \(elsewhere: .upload) on a device that "
        + "has the document."
    case .wholeStorePrivate:
      "Run \(elsewhere: .upload) on the device that made it, with a current version, then remove the "
        + "file."
    default:
      "Run \(elsewhere: .upload) on a device that has the document, then remove the file."
    }
  }

  private var storeRemedy: Remedy {
    switch self {
    case .databaseDamaged, .bookkeepingDamaged, .stampsDamaged, .keptRowDamaged, .rowMissing,
      .rowDeleted, .identityAmbiguous, .shownDiffers, .keptRowInconsistent, .appliedDiffers:
      "Send what was edited with \(.synchronize) if that works, then fetch the document again with "
        + "\(.joinReplacing); the file is kept as a backup."
    case .foreignKeysBroken:
      "Look at the rows with “PRAGMA foreign_key_check”. A program has written with foreign keys "
        + "off; the next \(.synchronize) puts what it left in line."
    case .constraintsBroken:
      "Mend the rows: a program has written with the conditions off."
    case .schemaUnsuitable: "Change the table so that it can be synchronized."
    case .editTooLarge:
      "Make the value smaller, keep it in a file of its own, or delete the row; then run "
        + "\(.synchronize)."
    case .bookkeepingNewer: "Update DocumentSync on this device."
    case .triggersOutOfDate: "Run \(.synchronize), which makes the triggers again."
    case .rowUnknown:
      "A program wrote it while nothing was captured, so that no other device has it: delete the row "
        + "and insert it again."
    case .identityOrphaned: "You need not do anything, unless rows are missing."
    case .rowWithoutKey: "Give them keys, if other devices are to have them."
    case .referenceUndeclared:
      "If it refers to rows, declare it as a foreign key: other devices have other integer keys."
    case .outboxDamaged, .recordDamaged:
      "Restore the file from a backup or join the document again with \(.joinReplacing), and "
        + "copy over what was edited here."
    case .inboxDamaged: "Run \(.synchronize): what waits is fetched again from the directory."
    case .journalDamaged:
      "Note what \(.listConflicts) shows; nothing else depends on the journal."
    case .conflictFileUnusable:
      "Do what the finding says; nothing else depends on the file."
    case .storeBehind:
      "Run \(.synchronize): the store is an older state of itself, or a copy, and becomes a device of "
        + "its own."
    case .storeRetired:
      "Run \(.synchronize): it goes on as a new device, and all its edits arrive."
    case .storeMoved:
      "You need not do anything: the next \(.synchronize) makes it a device of its own."
    case .setUpUnfinished:
      "Complete it with the same \(.create) as before. To end it, take the store out of sync with "
        + "\(.leaveAbandoning)."
    case .directoryAway: "Check the path, or connect the shared directory, then verify again."
    case .bindingMissing: "Run \(.synchronize), which says what has become of the document."
    case .ownFileMissing: "Run \(.synchronizeThoroughly), which puts back what is missing."
    default:
      "Wait until the shared directory has arrived. If it has, it may have been restored from a "
        + "backup: run \(elsewhere: .synchronizeThoroughly) on every device."
    }
  }
}
