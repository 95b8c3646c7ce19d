import SyncModel
import SyncStore

/// `generation.<ordinal>.<integrity key>.json`: one generation of a document.
struct GenerationFile: Hashable, Codable {
  /// The root as the generation's creator knew it; the headers of all files of
  /// this generation contain it.
  var root: RootIdentifier
  var document: DocumentName
  /// The identifier that the user chose.
  var identifier: String
  var generation: IntegrityKey
  var ordinal: UInt64
  var description: String
  var previous: IntegrityKey?
  var leastReaderVersion = 1
  var requiredFeatures: [String] = []
  var creator: ClientIdentifier
  var createdMilliseconds: Int64
  var userInfo: SyncUserInfo?
}

/// `deleted.<ordinal>.<client>.json`: the deletion of a document.
struct TombstoneFile: Hashable, Codable {
  var root: RootIdentifier
  var document: DocumentName
  /// The ordinal of the deleted generation; earlier ones are deleted as well.
  var ordinal: UInt64
  var client: ClientIdentifier
  /// The name of the client.
  var clientDescription: String?
  var deletedMilliseconds: Int64
}

extension GenerationFile {
  /// Creates the file with the parts that a binding contains.
  init(of binding: StoreBinding) {
    self.init(
      root: binding.root, document: binding.document, identifier: binding.documentIdentifier,
      generation: binding.generation, ordinal: UInt64(binding.generationOrdinal), description: "",
      creator: binding.client, createdMilliseconds: 0)
  }
}
