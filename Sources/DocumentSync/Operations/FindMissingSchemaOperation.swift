import SyncDirectory
import SyncModel
import SyncStore

/// Finds what the schemas of other devices have and the store's lacks, in the whole stores in the
/// directory. Changes nothing.
final class FindMissingSchemaOperation: DocumentOperation<StoreStatus.MissingSchema>,
  @unchecked Sendable
{
  /// The most devices whose whole stores are downloaded.
  private static let greatestCount = 8

  init(
    store: LocalStore, directory: any SharedDirectory, turns: SyncTurns,
    environment: SyncEnvironment
  ) {
    super.init(
      "look for missing tables and columns", store: store, directory: directory, turns: turns,
      environment: environment)
  }

  override func perform() async throws -> StoreStatus.MissingSchema {
    try await holdingStore { [self] files in
      let siblings = LocalSiblings(store: store.path, operation: verb)
      try siblings.removeAll()
      do {
        let missing = try find(files, siblings)
        try siblings.removeAll()
        return missing
      } catch {
        try siblings.removeAll()
        throw error
      }
    }
  }

  private func find(
    _ files: SharedFiles, _ siblings: LocalSiblings
  ) throws -> StoreStatus.MissingSchema {
    begin(.listing)
    let binding = store.binding
    try DocumentSteps(files).check(binding)
    let document = GenerationFile(of: binding)
    let steps = WholeStoreSteps(files)
    var missing = StoreStatus.MissingSchema()
    let candidates = try steps.candidates(document).filter { $0.client != binding.client }
    for candidate in newest(candidates) {
      try checkCancellation()
      do {
        _ = try steps.download(
          document, beside: siblings,
          where: { $0.client == candidate.client && $0.name == candidate.name })
      } catch let error as SyncError
        where [.wholeStoreMissing, .newerVersionNeeded].contains(error.code)
      {
        // Another device's may be usable.
        environment.logger.notice("\(error)")
        continue
      }
      let found = try store.missingDefinitions(
        comparedTo: siblings.temporary("database"), checkCancellation: checkCancellation)
      missing.add(found)
    }
    missing.undefinedNames = try store.status().unknownNames.filter { name in
      !missing.definitions.contains { definition in
        definition.name.isSame(as: name)
      }
    }
    return missing
  }

  /// Returns the newest whole store of each device, in their order.
  private func newest(
    _ candidates: [WholeStoreSteps.Candidate]
  ) -> ArraySlice<WholeStoreSteps.Candidate> {
    let last = Dictionary(
      candidates.map { ($0.client, $0.name.number) }, uniquingKeysWith: max)
    return candidates.filter { last[$0.client] == $0.name.number }.prefix(Self.greatestCount)
  }
}

extension StoreStatus.MissingSchema {
  /// Adds the definitions of another device, apart from those that are known by name. Keeps the order
  /// of kinds.
  fileprivate mutating func add(_ others: [Definition]) {
    let order: [Definition.Kind] = [.table, .column, .index, .view, .trigger]
    let new = others.filter { other in
      !definitions.contains { $0.name.isSame(as: other.name) }
    }
    definitions = order.flatMap { kind in (definitions + new).filter { $0.kind == kind } }
  }
}
