import Dispatch
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Reads and checks files of change sets, several at a time.
struct ChangeFileReader: Sendable {
  /// What the files that claim one number contain.
  struct Outcome: Sendable {
    /// The files that are whole and belong where they are.
    var intact: [ReceivedChangeSet] = []
    /// What is wrong with the first of the others.
    var failure: SyncReport.Wait?
    /// Whether a file that was listed is not there any more.
    var hasVanished = false
    /// Whether one takes more memory than is allowed while several are read at
    /// once.
    fileprivate var isLarge = false
    /// The memory that the intact ones take.
    fileprivate var memory = 0
  }

  /// The most memory that the files that claim one number take together, beyond
  /// the first intact one: any number of files can claim it.
  private static let memoryForOneNumber = 32 << 20

  private let files: SharedFiles
  private let header: SyncChangeSet.Header
  private let layout: DirectoryLayout.Generation
  private let segments: SegmentReader

  /// - Parameter header: What the headers of all files here have in common.
  init(
    _ files: SharedFiles, header: SyncChangeSet.Header, layout: DirectoryLayout.Generation,
    segments: SegmentReader
  ) {
    self.files = files
    self.header = header
    self.layout = layout
    self.segments = segments
  }

  /// Reads the items in order, as many as fit in memory together, and at least one if nothing else
  /// is in it. Throws errors that do not concern a single file.
  ///
  /// A large file is read only while nothing else is in memory: the outcomes end before it.
  ///
  /// - Parameter isAlone: Whether nothing was read before that is still in memory.
  func read(_ items: [ChangeFetchQueue.Item], isAlone: Bool = true) throws -> [Outcome] {
    let results = Results(count: items.count)
    // Reading mostly waits: each item has a thread, whatever the number of
    // cores.
    let queue = DispatchQueue(label: "DocumentSync: read", attributes: .concurrent)
    let group = DispatchGroup()
    for (index, item) in items.enumerated() {
      queue.async(group: group) { [files] in
        let result = DirectoryPatience.result(with: files.context.checkCancellation) {
          try outcome(of: item, limits: .moderate)
        }
        results.set(index, result)
      }
    }
    group.wait()
    let outcomes = try results.takeAll()
    let small = outcomes.prefix { !$0.isLarge }
    guard small.isEmpty, isAlone, let first = items.first else { return Array(small) }
    return [try outcome(of: first, limits: .default)]
  }

  /// Looks into segments only if the change set has no intact file of its own.
  private func outcome(
    of item: ChangeFetchQueue.Item, limits: CodecLimits
  ) throws -> Outcome {
    var outcome = Outcome()
    func add(
      _ path: RelativePath, _ read: () throws -> Result<ReceivedChangeSet, Failure>
    ) rethrows {
      do {
        switch try read() {
        case .success(let received):
          // Those that come first are the ones that count.
          let memory = outcome.memory + received.changeSet.byteCount
          guard outcome.intact.isEmpty || memory <= Self.memoryForOneNumber else { return }
          outcome.memory = memory
          outcome.intact.append(received)
        case .failure(let failure): outcome.failure = outcome.failure ?? failure.wait
        }
      } catch let error as CodecError {
        if error.code == .lengthOverCap { outcome.isLarge = true }
        outcome.failure =
          outcome.failure
          ?? (error.needsNewerReader
            ? wait(item, .newerFormat, "it was written by a newer version of DocumentSync", path)
            : wait(item, .damaged, "its file is damaged: \(error.what)", path))
      } catch let error as DirectoryError where error.concernsOneFile {
        if error.code == .notFound { outcome.hasVanished = true }
        if error.code == .tooLarge { outcome.isLarge = true }
        outcome.failure =
          outcome.failure
          ?? wait(item, .unreadable, "its file could not be read: \(error.code)", path)
      }
    }
    for name in item.names {
      let path = layout.path(of: name, by: item.client)
      try add(path) {
        let bytes = try files.read(path, limit: limits.fileBytes)
        let hash = ContentHash(of: bytes)
        guard name.hash.matches(hash) else {
          return .failure(
            Failure(
              wait: wait(
                item, .damaged, "its file is damaged or has not arrived completely", path)))
        }
        return try received(item, bytes, hash, path, limits)
      }
    }
    for name in item.containing where outcome.intact.isEmpty {
      let path = layout.path(of: name, by: item.client)
      try add(path) {
        let part = try segments.part(
          item.number, of: name, by: item.client, limit: 2 * limits.fileBytes)
        return try received(item, part.bytes, part.hash, path, limits)
      }
    }
    return outcome
  }

  private struct Failure: Error {
    var wait: SyncReport.Wait
  }

  private func received(
    _ item: ChangeFetchQueue.Item, _ bytes: [UInt8], _ hash: ContentHash, _ path: RelativePath,
    _ limits: CodecLimits
  ) throws -> Result<ReceivedChangeSet, Failure> {
    let changeSet = try ChangeSetCodec.decode(
      bytes, limits: limits, checkCancellation: files.context.checkCancellation)
    guard belongs(changeSet.header, to: item) else {
      return .failure(
        Failure(
          wait: wait(
            item, .misplaced, "its file belongs to another document, client or number", path)))
    }
    return .success(ReceivedChangeSet(changeSet: changeSet, hash: hash, bytes: bytes))
  }

  private func wait(
    _ item: ChangeFetchQueue.Item, _ reason: SyncReport.Wait.Reason, _ message: String,
    _ path: RelativePath
  ) -> SyncReport.Wait {
    SyncReport.Wait(
      client: item.client, number: item.number, reason: reason, message: message,
      path: path.description)
  }

  private func belongs(
    _ found: SyncChangeSet.Header, to item: ChangeFetchQueue.Item
  ) -> Bool {
    found.root == header.root && found.document == header.document
      && found.generation == header.generation && found.client == item.client
      && found.number == item.number
  }

  private final class Results: Sendable {
    private let lock = NSLock()
    nonisolated(unsafe) private var values: [Result<Outcome, any Error>?]

    init(count: Int) { values = Array(repeating: nil, count: count) }

    func set(_ index: Int, _ value: Result<Outcome, any Error>) {
      lock.withLock { values[index] = value }
    }

    /// Removes all of them and returns them.
    func takeAll() throws -> [Outcome] {
      try lock.withLock {
        defer { values = [] }
        return try values.compactMap { try $0?.get() }
      }
    }
  }
}
