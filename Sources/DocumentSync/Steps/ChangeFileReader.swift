import Dispatch
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Reads and checks files of change sets, several at a time.
struct ChangeFileReader: Sendable {
  /// What the names that claim one number hold.
  struct Outcome: Sendable {
    /// The files that are whole and belong where they are.
    var intact: [ReceivedChangeSet] = []
    /// What is wrong with the first of the others.
    var failure: SyncWait?
  }

  private let files: SharedFiles
  private let header: SyncChangeSet.Header
  private let layout: DirectoryLayout.Generation

  /// - Parameter header: What the headers of all files here have in common.
  init(
    _ files: SharedFiles, header: SyncChangeSet.Header, layout: DirectoryLayout.Generation
  ) {
    self.files = files
    self.header = header
    self.layout = layout
  }

  /// The outcomes in the order of `items`. Throws what is no single file's
  /// fault.
  func read(_ items: [ChangeFetchQueue.Item]) throws -> [Outcome] {
    let results = Results(count: items.count)
    // Reading is waiting, mostly: a thread for each, whatever the cores.
    let queue = DispatchQueue(label: "DocumentSync: read", attributes: .concurrent)
    let group = DispatchGroup()
    for (index, item) in items.enumerated() {
      queue.async(group: group) {
        results.set(index, Result { try outcome(of: item) })
      }
    }
    group.wait()
    return try results.all()
  }

  private func outcome(of item: ChangeFetchQueue.Item) throws -> Outcome {
    var outcome = Outcome()
    for name in item.names {
      switch try read(name, by: item.client) {
      case .success(let received): outcome.intact.append(received)
      case .failure(let failure): outcome.failure = outcome.failure ?? failure.wait
      }
    }
    return outcome
  }

  private struct Failure: Error {
    var wait: SyncWait
  }

  private func read(
    _ name: ChangeSetName, by client: ClientIdentifier
  ) throws -> Result<ReceivedChangeSet, Failure> {
    let path = layout.path(of: name, by: client)
    func failure(_ reason: SyncWait.Reason, _ message: String) -> Result<ReceivedChangeSet, Failure>
    {
      .failure(
        Failure(
          wait: SyncWait(
            client: client, number: name.number, reason: reason, message: message,
            path: path.description)))
    }
    do {
      let bytes = try files.read(path, limit: CodecLimits.default.fileBytes)
      let hash = ContentHash(of: bytes)
      guard name.hash.matches(hash) else {
        return failure(.damaged, "its file is damaged or has not arrived completely")
      }
      let changeSet = try ChangeSetCodec.decode(bytes)
      guard belongs(changeSet.header, as: name, by: client) else {
        return failure(.misplaced, "its file belongs to another document, client or number")
      }
      return .success(ReceivedChangeSet(changeSet: changeSet, hash: hash, bytes: bytes))
    } catch let error as CodecError {
      return error.needsNewerReader
        ? failure(.newerFormat, "it was written by a newer version of DocumentSync")
        : failure(.damaged, "its file is damaged: \(error.what)")
    } catch let error as DirectoryError where error.concernsOneFile {
      return failure(.unreadable, "its file could not be read: \(error.code)")
    }
  }

  private func belongs(
    _ found: SyncChangeSet.Header, as name: ChangeSetName, by client: ClientIdentifier
  ) -> Bool {
    found.root == header.root && found.document == header.document
      && found.generation == header.generation && found.client == client
      && found.number == name.number
  }

  private final class Results: Sendable {
    private let lock = NSLock()
    nonisolated(unsafe) private var values: [Result<Outcome, any Error>?]

    init(count: Int) { values = Array(repeating: nil, count: count) }

    func set(_ index: Int, _ value: Result<Outcome, any Error>) {
      lock.withLock { values[index] = value }
    }

    func all() throws -> [Outcome] {
      try lock.withLock { try values.compactMap { try $0?.get() } }
    }
  }
}
