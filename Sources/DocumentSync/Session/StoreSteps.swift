import SyncDirectory
import SyncModel
import SyncStore

/// Steps of a synchronization, and the values that each of them needs.
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
  /// The folders of the store's generation.
  var layout: DirectoryLayout.Generation {
    let binding = binding
    return DirectoryLayout.Document(binding.document).generation(binding.generation)
  }
  /// The fields that the headers of all change sets and segments of the
  /// generation share, with this client as their author.
  var header: SyncChangeSet.Header {
    let binding = binding
    return SyncChangeSet.Header(
      root: binding.root, document: binding.document, generation: binding.generation,
      client: binding.client, number: 0, previous: nil)
  }
}
