import SyncDirectory
import SyncModel
import SyncStore

/// Takes a store out of sync, whatever its state: even if its set-up is not complete, or its
/// bookkeeping is damaged.
///
/// It sends nothing and tells no device. If the set-up is not complete, it also removes the files of
/// the set-up from the directory, as far as it can reach them and no other device can have joined.
final class AbandonOperation: SyncOperation<Bool>, @unchecked Sendable {
  private let path: String
  private let directory: (any SharedDirectory)?

  init(path: String, directory: (any SharedDirectory)?, environment: SyncEnvironment) {
    self.path = path
    self.directory = directory
    super.init("leave the document", environment: environment)
  }

  /// Returns whether no file of an incomplete set-up is left in the directory.
  override func perform() async throws -> Bool {
    try await blocking { [self] in
      try holdingLock(of: path) {
        let (client, state) = try read()
        let isClean = try state.map(takeBack) ?? true
        try checkCancellation()
        try LocalStore.removeBookkeeping(
          at: path, of: client, options: environment.storeOptions)
        return isClean
      }
    }
  }

  /// Reads as much as the bookkeeping says.
  private func read() throws -> (ClientIdentifier?, SetUpState?) {
    do {
      let binding = try LocalStore.look(at: path, record: StoreRecords.setUpKey).binding
      return (binding.client, try SetUpState.read(storeAt: path))
    } catch let error as StoreError where [.damaged, .sqlite].contains(error.code) {
      // Its bookkeeping can be removed nevertheless.
      environment.logger.notice("\(verb): \(error)")
      return (nil, nil)
    }
  }

  private func takeBack(_ state: SetUpState) throws -> Bool {
    do {
      let directory = try self.directory ?? environment.openDirectory(state.binding.directory)
      let files = SharedFiles(environment.retrying(directory), context: OperationContext(self))
      let hasUploaded = try StoreRecords.hasUploaded(storeAt: path)
      return try SetUpFiles(files: files, binding: state.binding, hasUploaded: hasUploaded)
        .remove() == .removed
    } catch let error where !(error is CancellationError) {
      // The directory is gone for good, as far as the caller knows.
      environment.logger.notice("\(verb): \(error)")
      return false
    }
  }
}
