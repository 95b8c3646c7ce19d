import SyncModel

/// `application.<root id>.json`: the application that a shared directory
/// belongs to.
struct ApplicationFile: Hashable, Codable {
  var formatVersion = FormatVersion.current
  var application: String
  var root: RootIdentifier
  /// A reader below this version must leave the directory alone.
  var leastReaderVersion = 1
  /// A reader that does not know all of these must leave the directory alone.
  var requiredFeatures: [String] = []
  var creator: ClientIdentifier
  var createdMilliseconds: Int64
  var description: String?
  var userInfo: SyncUserInfo?
}

/// `ClientDevices/<client>.<revision>.json`: a client's description of itself.
struct ClientFile: Hashable, Codable {
  var client: ClientIdentifier
  var description: String
  var platform: String
  var ancestor: ClientIdentifier?
  var readerVersion = FormatVersion.reader
  var registeredMilliseconds: Int64
  /// The document of the client's store.
  var document: DocumentName?
  var userInfo: SyncUserInfo?
  /// When its store was taken out of sync.
  var leftMilliseconds: Int64?
}

/// `ClientDevices/<client>.removed.<hash>.json`: the removal of a client.
struct ClientRemovalFile: Hashable, Codable {
  var client: ClientIdentifier
  /// The client that removed it.
  var by: ClientIdentifier
  var byDescription: String
  var removedMilliseconds: Int64
}
