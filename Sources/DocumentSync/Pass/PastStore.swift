import SyncDirectory
import SyncModel
import SyncStore

/// Makes separate stores of the document as it was, out of whole stores and change sets.
struct PastStore: StoreSteps {
  let session: SyncSession

  /// Makes a separate store from the best whole store that is wanted. The caller closes it, and removes the
  /// temporary files. Throws `wholeStoreMissing`.
  ///
  /// - Parameter generation: The generation of the whole store; `nil` for the store's own.
  func make(
    _ siblings: LocalSiblings, of generation: GenerationFile? = nil,
    where isWanted: (WholeStoreSteps.Candidate) -> Bool = { _ in true }
  ) throws -> LocalStore {
    // Tries all whole stores: nothing else has what they have.
    _ = try WholeStoreSteps(files).download(
      generation ?? GenerationFile(of: binding), beside: siblings, atMost: .max, where: isWanted)
    var binding = generation.map(binding.moved) ?? binding
    var generator = context.environment.generator
    // No other device learns of this client.
    binding.client = .random(using: &generator)
    var options = context.environment.storeOptions
    options.places = nil
    return try LocalStore.adopt(
      snapshotAt: siblings.temporary("database"), binding: binding, options: options,
      checkCancellation: context.checkCancellation)
  }

  /// Applies the change sets up to the given number of each client, and no others. What is neither in the
  /// directory nor here stays missing, and what depends on it.
  func catchUp(_ past: LocalStore, to numbers: [ClientIdentifier: UInt64]) throws {
    let unheard = SharedFiles(files.directory, context: context.unheard)
    let fetch = try ChangeFetch(
      SyncSession(files: unheard, store: past), heads: numbers,
      cuts: numbers.mapValues { .settled($0) }, lowestKept: { _ in 1 })
    try fetch.run()
    let has = try past.vector()
    let sealed = try store.ancestralChangeSets() + store.sealedChangeSets()
    let unpublished = try sealed.filter {
      $0.isKept && $0.number > has.number(of: $0.client) && $0.number <= numbers[$0.client] ?? 0
    }.map { sealed in
      let bytes = try store.sealedBytes(sealed.number, of: sealed.client)
      return ReceivedChangeSet(
        changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
    }
    _ = try past.apply(unpublished, checkCancellation: context.checkCancellation)
  }
}
