import DocumentSync

func shareNotes(laptop: String, phone: String, folder: String) async throws -> SyncReport {
  let directory = FolderDirectory(root: folder)
  let mine = try await DocumentSyncManager.create(
    storeAt: laptop, directory: directory, document: "notes")
  let yours = try await DocumentSyncManager.join(storeAt: phone, directory: directory)
  // Both are ordinary SQLite files: edit them with whatever you like, then…
  try await mine.synchronize()
  return try await yours.synchronize()
}
