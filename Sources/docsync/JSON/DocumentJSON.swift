import DocumentSync

/// A document in a shared directory, as printed.
struct DocumentJSON: Encodable, Sendable {
  /// What its folder contains.
  struct Contents: Encodable, Sendable {
    var fileCount: Int
    var byteCount: Int
    var clients: [String]
    var lastSyncMilliseconds: Int64?
    /// The paths of files that do not belong to DocumentSync.
    var foreign: [String]

    init(_ contents: DocumentDescription.Contents) {
      fileCount = contents.fileCount
      byteCount = contents.byteCount
      clients = contents.clients.map(\.description)
      lastSyncMilliseconds = contents.lastSyncMilliseconds
      foreign = contents.foreign
    }
  }

  var identifier: String
  var name: String
  var generation: String
  var ordinal: UInt64
  var description: String
  var userInfo: SyncUserInfo
  var creator: String
  var createdMilliseconds: Int64
  var isDeleted: Bool
  var deletion: DeletionJSON?
  var contents: Contents?

  init(_ document: DocumentDescription) {
    identifier = document.identifier
    name = document.name.description
    generation = document.generation.description
    ordinal = document.ordinal
    description = document.description
    userInfo = document.userInfo
    creator = document.creator.description
    createdMilliseconds = document.createdMilliseconds
    isDeleted = document.isDeleted
    deletion = document.deletion.map(DeletionJSON.init)
    contents = document.contents.map(Contents.init)
  }
}
