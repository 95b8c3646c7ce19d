import SyncDirectory
import SyncModel
import SyncStore

/// Reads files that are numbered and chained, and whose names contain their
/// hash: change sets and commands.
///
/// A file that does not check out is a ``Problem``: its author's later files
/// wait for it.
struct NumberedFileReader: Sendable {
  /// The reason why a file cannot be used.
  struct Problem: Error {
    var reason: SyncReport.Wait.Reason
    var message: String
    /// Whether the file was listed and has disappeared.
    var hasVanished = false
    /// Whether the file takes more memory than is allowed at the moment.
    var isLarge = false

    init(_ reason: SyncReport.Wait.Reason, _ message: String) {
      self.reason = reason
      self.message = message
    }

    /// The problem of an intact file in the wrong place.
    static let misplaced = Problem(
      .misplaced, "its file belongs to another document, client or number")
  }

  let files: SharedFiles

  /// Reads a file, and passes its bytes and their hash to `decode` if the hash
  /// matches the name.
  ///
  /// - Parameter decode: Throws ``Problem`` or ``CodecError`` if the content is
  ///   wrong.
  func read<Content>(
    _ path: RelativePath, _ fragment: HashFragment, limit: Int,
    _ decode: ([UInt8], ContentHash) throws -> Content
  ) throws -> Result<Content, Problem> {
    try result {
      let bytes = try files.read(path, limit: limit)
      let hash = ContentHash(of: bytes)
      guard fragment.matches(hash) else {
        throw Problem(.damaged, "its file is incomplete or damaged")
      }
      return try decode(bytes, hash)
    }
  }

  /// Returns the result of `body`, or the problem of the file that it reads.
  /// Throws errors that do not concern that file alone.
  func result<Content>(_ body: () throws -> Content) throws -> Result<Content, Problem> {
    do {
      return .success(try body())
    } catch let problem as Problem {
      return .failure(problem)
    } catch let error as CodecError {
      var problem =
        error.needsNewerReader
        ? Problem(.newerFormat, "it was written by a newer version of DocumentSync")
        : Problem(.damaged, "its file is damaged: \(error.what)")
      problem.isLarge = error.code == .lengthOverCap
      return .failure(problem)
    } catch let error as DirectoryError where error.concernsOneFile {
      var problem = Problem(.unreadable, "its file could not be read: \(error.code)")
      problem.hasVanished = error.code == .notFound
      problem.isLarge = error.code == .tooLarge
      return .failure(problem)
    }
  }
}

/// The place that a file names as its own, which has to agree with its place in
/// the directory.
struct FileOrigin: Hashable {
  var root: RootIdentifier
  var document: DocumentName
  var generation: IntegrityKey
  var client: ClientIdentifier
}

extension FileOrigin {
  init(_ header: SyncChangeSet.Header) {
    self.init(
      root: header.root, document: header.document, generation: header.generation,
      client: header.client)
  }

  /// Creates the origin of another client's file.
  init(_ header: SyncChangeSet.Header, of client: ClientIdentifier) {
    self.init(header)
    self.client = client
  }

  init(_ segment: Segment) {
    self.init(
      root: segment.root, document: segment.document, generation: segment.generation,
      client: segment.client)
  }

  init(_ command: SyncCommandFile) {
    self.init(
      root: command.root, document: command.document, generation: command.generation,
      client: command.client)
  }
}
