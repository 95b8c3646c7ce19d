import SyncDirectory
import SyncModel
import SyncStore

/// Finds out how many change sets of each other client a store has not applied,
/// by the names of the markers in the directory. Changes nothing.
final class FindUnreceivedOperation: SyncOperation<[ClientIdentifier: Int]>, @unchecked Sendable {
  private let store: LocalStore
  private let directory: any SharedDirectory

  init(store: LocalStore, directory: any SharedDirectory, environment: SyncEnvironment) {
    self.store = store
    self.directory = environment.retrying(directory)
    super.init("look for change sets", environment: environment)
  }

  override func perform() async throws -> [ClientIdentifier: Int] {
    try await blocking { [self] in
      begin(.listing)
      let files = SharedFiles(directory, context: OperationContext(self))
      while true {
        let standing = try store.standing()
        let found = try counts(beyond: standing, files)
        // A synchronization, for example, makes the store another client's meanwhile.
        if try store.standing().binding == standing.binding { return found }
      }
    }
  }

  /// Returns how many change sets of each other client the markers name that the store has not
  /// received.
  private func counts(
    beyond standing: LocalStore.Standing, _ files: SharedFiles
  ) throws -> [ClientIdentifier: Int] {
    let binding = standing.binding
    try DocumentSteps(files).check(binding)
    let layout = DirectoryLayout.Document(binding.document).generation(binding.generation)
    let markers = try files.listIfPresent(layout.recentSyncs, as: MarkerName.self)
    var counts: [ClientIdentifier: Int] = [:]
    for marker in markers where marker.client != binding.client {
      let number = standing.applied.number(of: marker.client)
      guard marker.changeHead > number else { continue }
      // A forged name can contain any number.
      let count = Int(clamping: marker.changeHead - number)
      counts[marker.client] = max(count, counts[marker.client] ?? 0)
    }
    return counts
  }
}
