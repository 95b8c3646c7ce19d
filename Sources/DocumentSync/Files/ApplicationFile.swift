import SyncModel

/// `application.<root id>.json`: what a shared directory belongs to.
struct ApplicationFile: Hashable, Codable {
  var formatVersion = FormatVersion.current
  var application: String
  var root: RootIdentifier
  /// Readers below this version must keep away.
  var leastReaderVersion = 1
  /// Readers that do not know one of these must keep away.
  var requiredFeatures: [String] = []
  var creator: ClientIdentifier
  var createdMilliseconds: Int64
}

/// `ClientDevices/<client>.<revision>.json`: what a client says about itself.
struct ClientFile: Hashable, Codable {
  var client: ClientIdentifier
  var description: String
  var platform: String
  var ancestor: ClientIdentifier?
  var readerVersion = FormatVersion.reader
  var registeredMilliseconds: Int64
}
