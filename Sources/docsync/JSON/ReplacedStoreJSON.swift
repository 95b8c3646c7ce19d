import DocumentSync

/// A store under sync that joining has replaced, as printed.
struct ReplacedStoreJSON: Encodable, Sendable {
  var client: String?
  var document: String?
  var directory: String?
  var isSameDocument: Bool
  var unsentChangeSets: Int
  var restoredChangeSets: Int
  /// The numbers of the change sets whose rows only the backup has.
  var missingChangeSets: [UInt64]
  var heldEdits: Int
  /// Why the store could not be read.
  var unreadable: String?

  init(_ store: ReplacedStore) {
    client = store.client?.description
    document = store.document
    directory = store.directory
    isSameDocument = store.isSameDocument
    unsentChangeSets = store.unsentChangeSets
    restoredChangeSets = store.restoredChangeSets
    missingChangeSets = store.missingChangeSets
    heldEdits = store.heldEdits
    unreadable = store.unreadable
  }
}
