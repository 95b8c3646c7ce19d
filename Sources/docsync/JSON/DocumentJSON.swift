import DocumentSync

/// A document in a shared directory, as printed.
struct DocumentJSON: Encodable, Sendable {
  /// The contents of the document's folder.
  struct Contents: Encodable, Sendable {
    var fileCount: Int
    var byteCount: Int
    var clients: [String]
    var syncedMilliseconds: Int64?
    /// The paths of files that do not belong to DocumentSync.
    var otherFiles: [String]

    init(_ contents: DocumentDescription.Contents) {
      fileCount = contents.fileCount
      byteCount = contents.byteCount
      clients = contents.clients.map(\.description)
      syncedMilliseconds = contents.lastSyncMilliseconds
      otherFiles = contents.foreign
    }
  }

  var document: String
  /// The name of the document's folder.
  var folder: String
  var generation: String
  var ordinal: UInt64
  var documentName: String
  var userInfo: SyncUserInfo
  var creator: String
  var createdMilliseconds: Int64
  var isDeleted: Bool
  var deletion: DeletionJSON?
  var contents: Contents?

  init(_ document: DocumentDescription) {
    self.document = document.identifier
    folder = document.name.description
    generation = document.generation.description
    ordinal = document.ordinal
    documentName = document.description
    userInfo = document.userInfo
    creator = document.creator.description
    createdMilliseconds = document.createdMilliseconds
    isDeleted = document.isDeleted
    deletion = document.deletion.map(DeletionJSON.init)
    contents = document.contents.map(Contents.init)
  }
}
