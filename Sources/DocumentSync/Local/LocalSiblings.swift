import Foundation
import SyncStore
import SyncModel

/// The temporary files of this module beside a store.
///
/// Their names begin with the store's name, so that an operation that holds the
/// store's lock may remove those of an interrupted operation.
struct LocalSiblings {
  let store: String
  let operation: String

  private var folder: String { StorePath(store).folder }
  private var prefix: String { StorePath(store).name + "-docsync-tmp." }

  /// Returns the path for a temporary file, which does not outlive the call.
  func temporary(_ kind: String) -> String { store + "-docsync-tmp." + kind }

  /// Removes all temporary files. The caller holds the lock.
  func removeAll() throws {
    do {
      for name in try FileManager.default.contentsOfDirectory(atPath: folder)
      where name.hasPrefix(prefix) {
        do {
          try FileManager.default.removeItem(atPath: folder + "/" + name)
        } catch let error as CocoaError where error.code == .fileNoSuchFile {
          // The interrupted operation has removed it meanwhile.
          continue
        }
      }
    } catch {
      throw failure(error, "Unfinished files beside the store could not be removed.")
    }
  }

  /// Puts the new store into the file of a database, in one step. The database
  /// becomes a backup, at the returned path, with a copy of its older conflicts.
  ///
  /// - Parameter copy: The copy of the database that the replacement has made.
  func putIntoPlace(
    _ new: String, _ replacement: DatabaseReplacement, copy: String, milliseconds: Int64,
    _ checkCancellation: () throws -> Void
  ) throws -> String {
    let backup = backup(milliseconds)
    try LocalStore.copyArchive(from: store, to: copy)
    try LocalStore.moveArchive(from: copy, to: backup)
    do {
      try FileManager.default.moveItem(atPath: copy, toPath: backup)
      try FileFlush.flush(folder)
    } catch {
      throw failure(error, "The copy of the old store could not be given its name.")
    }
    do {
      try replacement.run(byStoreAt: new, checkCancellation: checkCancellation)
    } catch {
      if !replacement.mayHaveWritten {
        for path in [backup, LocalStore.archivePath(beside: backup)]
        where FileManager.default.fileExists(atPath: path) {
          try FileManager.default.removeItem(atPath: path)
        }
      }
      throw error
    }
    return backup
  }

  /// Moves the new store to its path, in one step. If `existing` allows that, it
  /// first moves a file there that is no database to the returned path, as a
  /// backup.
  ///
  /// The companions of an old store in WAL mode move with it, since they are
  /// part of it, and so does the file with its older conflicts.
  func moveIntoPlace(
    _ new: String, existing: ExistingFile, milliseconds: Int64, _ options: StoreOptions
  ) throws -> String? {
    var backup: String?
    if FileManager.default.fileExists(atPath: store) {
      try checkIsFile()
      guard existing != .refuse else { throw exists }
      if let database = try DatabaseReplacement(databaseAt: store, options: options) {
        try database.close()
        throw madeMeanwhile
      }
      try copyPermissions(to: new)
      backup = try moveAway(milliseconds)
    }
    do {
      // A merge may have had more conflicts than the new store holds. Without their store, the next
      // one at its path moves them aside.
      try LocalStore.moveArchive(from: new, to: store)
      // Throws if a file exists there by now.
      try FileManager.default.moveItem(atPath: new, toPath: store)
      // Flushes the file itself once more: FAT keeps its length in its folder.
      for path in [backup, store, folder].compactMap(\.self) { try FileFlush.flush(path) }
    } catch {
      throw failure(error, "The new store could not be given its name.")
    }
    return backup
  }

  private func backup(_ milliseconds: Int64) -> String { "\(store).backup-\(milliseconds)" }

  /// Throws `fileExists` if a file is at the path, and `notAFile` if anything
  /// else is, which is never moved away.
  func checkFree(_ existing: ExistingFile) throws {
    guard FileManager.default.fileExists(atPath: store) else { return }
    try checkIsFile()
    if existing == .refuse { throw try isUnderSync() ? underSync : exists }
  }

  private func checkIsFile() throws {
    let type: FileAttributeType?
    do {
      let resolved = URL(fileURLWithPath: store).resolvingSymlinksInPath().path
      type = try FileManager.default.attributesOfItem(atPath: resolved)[.type] as? FileAttributeType
    } catch {
      throw failure(error, "The existing file could not be inspected.")
    }
    guard type == .typeRegular else {
      let isFolder = type == .typeDirectory
      throw SyncError(
        .notAFile, operation: operation, path: store,
        message: isFolder
          ? "This is a folder, which is not replaced by a database."
          : "This is not an ordinary file.",
        remedy: isFolder
          ? "Name a database file, such as one in that folder."
          : "Choose another path.")
    }
  }

  /// Gives the new store the permissions of the old one: a user who could not
  /// read the old one must not be able to read the new one.
  private func copyPermissions(to new: String) throws {
    do {
      let resolved = URL(fileURLWithPath: store).resolvingSymlinksInPath().path
      let attributes = try FileManager.default.attributesOfItem(atPath: resolved)
      guard let permissions = attributes[.posixPermissions] else { return }
      try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: new)
    } catch {
      throw failure(error, "The new store could not be given the old one's permissions.")
    }
  }

  private func moveAway(_ milliseconds: Int64) throws -> String {
    let backup = backup(milliseconds)
    do {
      for companion in ["-wal", "-shm", "-journal", "", LocalStore.archiveSuffix]
      where FileManager.default.fileExists(atPath: store + companion) {
        try FileManager.default.moveItem(atPath: store + companion, toPath: backup + companion)
      }
    } catch {
      throw failure(error, "The old file could not be kept as a backup.")
    }
    return backup
  }

  private func isUnderSync() throws -> Bool {
    do {
      return try LocalStore.isUnderSync(at: store)
    } catch let error as StoreError where error.code == .notADatabase {
      return false
    }
  }

  /// The error also after an interrupted joining: the store exists then.
  private var underSync: SyncError {
    SyncError(
      .fileExists, operation: operation, path: store,
      message: "A database exists at this path, and it is under sync.",
      remedy: """
        Synchronize it with \(.synchronize), which also completes a \(.join) that was \
        interrupted. Or choose another path, or replace it with \(.joinReplacing); it is kept as \
        a backup.
        """
    )
  }

  private var madeMeanwhile: SyncError {
    SyncError(
      .storeBusy, operation: operation, path: store,
      message: "Another program has made a database here meanwhile.",
      remedy: "Close the programs that use it, then try again.")
  }

  private var exists: SyncError {
    SyncError(
      .fileExists, operation: operation, path: store, message: "A file exists at this path.",
      remedy: "Choose another path, or ask for the file to be replaced; it is kept as a backup.")
  }

  private func failure(_ error: any Error, _ message: String) -> SyncError {
    SyncError(
      .localFile, operation: operation, path: store, message: message,
      remedy: "Check that the folder is there and that this user may write to it.",
      detail: "\(error)", underlying: error)
  }
}
