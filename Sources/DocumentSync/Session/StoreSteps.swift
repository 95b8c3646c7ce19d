import SyncDirectory
import SyncModel
import SyncStore

/// Steps that a store goes through in its shared directory, and what each of
/// them has at hand.
///
/// The properties are current: during an operation the store may become another
/// client, or move to another generation.
protocol StoreSteps {
  /// The store, the directory, and the report.
  var session: SyncSession { get }
}

extension StoreSteps {
  var files: SharedFiles { session.files }
  var store: LocalStore { session.store }
  var context: OperationContext { files.context }
  var records: StoreRecords { StoreRecords(store, held: session.held) }
  var binding: StoreBinding { store.binding }
  var client: ClientIdentifier { store.binding.client }
  /// The folders of the generation that the store is in.
  var layout: DirectoryLayout.Generation {
    let binding = binding
    return DirectoryLayout.Document(binding.document).generation(binding.generation)
  }
  /// What the headers of all change sets and segments of the generation have
  /// in common, as one of this client.
  var header: SyncChangeSet.Header {
    let binding = binding
    return SyncChangeSet.Header(
      root: binding.root, document: binding.document, generation: binding.generation,
      client: binding.client, number: 0, previous: nil)
  }
}
