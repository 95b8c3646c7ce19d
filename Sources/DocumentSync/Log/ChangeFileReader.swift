import Dispatch
import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Reads and checks change set files, several at a time.
struct ChangeFileReader: Sendable {
  /// The result of reading the files that claim one number.
  struct Outcome: Sendable {
    /// The files that are whole and belong where they are.
    var intact: [ReceivedChangeSet] = []
    /// The problem of the first of the other files.
    var failure: SyncReport.Wait?
    /// Whether a listed file has disappeared.
    var hasVanished = false
    /// Whether a file takes more memory than is allowed while several are read
    /// at once.
    fileprivate var isLarge = false
    /// The memory that the intact files take, in bytes.
    fileprivate var memory = 0
  }

  /// The most memory in bytes that the files that claim one number take
  /// together, beyond the first intact one: any number of files can claim it.
  private static let memoryForOneNumber = 32 << 20

  private let files: SharedFiles
  private let header: SyncChangeSet.Header
  private let layout: DirectoryLayout.Generation
  private let segments: SegmentReader

  /// - Parameter header: The fields that the headers of all files in the
  ///   generation share.
  init(
    _ files: SharedFiles, header: SyncChangeSet.Header, layout: DirectoryLayout.Generation,
    segments: SegmentReader
  ) {
    self.files = files
    self.header = header
    self.layout = layout
    self.segments = segments
  }

  /// Reads the items in order, as many as fit in memory together, and at least
  /// one if memory has no other. Throws errors that do not concern a single
  /// file.
  ///
  /// A large file is read only if memory has no other: the outcomes end before
  /// it.
  ///
  /// - Parameter isAlone: Whether no file that was read before is still in
  ///   memory.
  func read(_ items: [ChangeFetchQueue.Item], isAlone: Bool = true) throws -> [Outcome] {
    let results = Results(count: items.count)
    // Reading is mostly waiting: each item has a thread, independently of the
    // number of cores.
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

  /// Reads an item; reads segments only if the change set has no intact file of
  /// its own.
  private func outcome(
    of item: ChangeFetchQueue.Item, limits: CodecLimits
  ) throws -> Outcome {
    var outcome = Outcome()
    let reader = NumberedFileReader(files: files)
    func add(
      _ path: RelativePath, _ result: Result<ReceivedChangeSet, NumberedFileReader.Problem>
    ) {
      switch result {
      case .success(let received):
        // The first files are those that count.
        let memory = outcome.memory + received.changeSet.byteCount
        guard outcome.intact.isEmpty || memory <= Self.memoryForOneNumber else { return }
        outcome.memory = memory
        outcome.intact.append(received)
      case .failure(let problem):
        if problem.hasVanished { outcome.hasVanished = true }
        if problem.isLarge { outcome.isLarge = true }
        outcome.failure =
          outcome.failure
          ?? SyncReport.Wait(
            client: item.client, number: item.number, reason: problem.reason,
            message: problem.message, path: path.description)
      }
    }
    for name in item.names {
      let path = layout.path(of: name, by: item.client)
      add(
        path,
        try reader.read(path, name.hash, limit: limits.fileBytes) { bytes, hash in
          try received(item, bytes, hash, limits)
        })
    }
    for name in item.containing where outcome.intact.isEmpty {
      add(
        layout.path(of: name, by: item.client),
        try reader.result {
          let part = try segments.part(
            item.number, of: name, by: item.client, limit: 2 * limits.fileBytes)
          return try received(item, part.bytes, part.hash, limits)
        })
    }
    return outcome
  }

  private func received(
    _ item: ChangeFetchQueue.Item, _ bytes: [UInt8], _ hash: ContentHash, _ limits: CodecLimits
  ) throws -> ReceivedChangeSet {
    let changeSet = try ChangeSetCodec.decode(
      bytes, limits: limits, checkCancellation: files.context.checkCancellation)
    guard FileOrigin(changeSet.header) == FileOrigin(header, of: item.client),
      changeSet.header.number == item.number
    else { throw NumberedFileReader.Problem.misplaced }
    return ReceivedChangeSet(changeSet: changeSet, hash: hash, bytes: bytes)
  }

  private final class Results: Sendable {
    private let lock = NSLock()
    nonisolated(unsafe) private var values: [Result<Outcome, any Error>?]

    init(count: Int) { values = Array(repeating: nil, count: count) }

    func set(_ index: Int, _ value: Result<Outcome, any Error>) {
      lock.withLock { values[index] = value }
    }

    /// Removes and returns all results.
    func takeAll() throws -> [Outcome] {
      try lock.withLock {
        defer { values = [] }
        return try values.compactMap { try $0?.get() }
      }
    }
  }
}
