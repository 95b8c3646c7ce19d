import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// The shared directory for the steps of an operation: every call checks for
/// cancellation, and counts the bytes that it moves.
final class SharedFiles: Sendable {
  /// The listings and the bytes so far.
  struct Counts: Sendable {
    var listings = 0
    var bytesRead = 0
    var bytesPublished = 0
  }

  let directory: any SharedDirectory
  let context: OperationContext
  private let lock = NSLock()
  nonisolated(unsafe) private var moved = Counts()
  /// The roots that have to be found before a file is touched.
  let expectations = RootExpectations()
  /// The note that files are being published.
  let publications = PublicationNote()

  init(_ directory: any SharedDirectory, context: OperationContext) {
    self.directory = directory
    self.context = context
  }

  /// The listings and the bytes so far.
  var counts: Counts { lock.withLock { moved } }

  /// A path as the user would name it.
  func userPath(_ path: RelativePath) -> String {
    path == .root ? directory.location : directory.location + "/" + path.description
  }

  /// Lists the names in a folder; an absent folder is an error.
  func list<Name: DirectoryName>(_ folder: RelativePath, as type: Name.Type) throws -> [Name] {
    try context.checkCancellation()
    lock.withLock { moved.listings += 1 }
    return try directory.list(folder, as: type).names
  }

  /// Lists the names in a folder; none if the folder is absent, which proves
  /// nothing.
  func listIfPresent<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> [Name] {
    try context.checkCancellation()
    lock.withLock { moved.listings += 1 }
    return try directory.listIfPresent(folder, as: type).names
  }

  /// Up to this number, folders are listed one by one without checking whether
  /// they exist.
  private static let folderCount = 32

  /// Lists the clients that have folders in a folder, if many folders would
  /// have to be listed: markers may name clients that do not exist. Returns
  /// `nil` if listing each folder is cheaper.
  func folders(
    in folder: RelativePath, ofSoMany count: Int
  ) throws -> Set<ClientIdentifier>? {
    guard count > Self.folderCount else { return nil }
    return Set(try listIfPresent(folder, as: ClientIdentifier.self))
  }

  /// Lists our names and the foreign names in a folder; none if the folder is
  /// absent.
  func listing<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> ParsedListing<Name> {
    try context.checkCancellation()
    lock.withLock { moved.listings += 1 }
    return try directory.listIfPresent(folder, as: type)
  }

  /// The length of a file; 0 if it is gone, or cannot be measured.
  func byteCount(of path: RelativePath) throws -> Int {
    try context.checkCancellation()
    do {
      return try directory.byteCount(of: path)
    } catch let error where error.concernsOneFile {
      return 0
    }
  }

  /// The length of a file; `nil` if it does not exist, 0 if it cannot be
  /// measured.
  func measure(_ path: RelativePath) throws -> Int? {
    do {
      try context.checkCancellation()
      return try directory.byteCount(of: path)
    } catch let error as DirectoryError where error.concernsOneFile {
      return error.code == .notFound ? nil : 0
    }
  }

  func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try prepare()
    let bytes = try directory.read(path, limit: limit)
    lock.withLock { moved.bytesRead += bytes.count }
    return bytes
  }

  /// Reads the value in a file with a JSON body.
  func read<Value: Decodable>(
    _ path: RelativePath, as type: Value.Type, _ fileType: Envelope.FileType
  ) throws -> Value {
    let bytes = try read(path, limit: CodecLimits.small.fileBytes)
    do {
      return try Envelope.decodeJSON(type, from: bytes, type: fileType)
    } catch {
      throw SyncError.wrapping(error, operation: context.verb, path: userPath(path))
    }
  }

  func publish(_ bytes: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws {
    try prepare()
    try publications.begin()
    try directory.publish(bytes, at: path, by: client)
    lock.withLock { moved.bytesPublished += bytes.count }
  }

  /// Publishes a file whose name contains the hash of `bytes`. Replaces an
  /// existing file of that name with other bytes: it is damaged.
  func publishReplacingDamaged(
    _ bytes: [UInt8], at path: RelativePath, by client: ClientIdentifier
  ) throws {
    do {
      try publish(bytes, at: path, by: client)
    } catch let error as DirectoryError where error.code == .exists {
      context.environment.logger.notice("putting back a damaged file: \(path)")
      try remove(path)
      try publish(bytes, at: path, by: client)
    }
  }

  func publish(
    _ value: some Encodable, as type: Envelope.FileType, at path: RelativePath,
    by client: ClientIdentifier
  ) throws {
    try publish(try Envelope.encodeJSON(value, type: type), at: path, by: client)
  }

  /// Publishes a copy of a local file of `byteCount` bytes.
  func upload(
    _ localFile: String, to path: RelativePath, byteCount: Int, by client: ClientIdentifier
  ) throws {
    try prepare()
    try publications.begin()
    context.begin(.uploading, count: 1, bytes: byteCount)
    try directory.upload(localFile: localFile, to: path, by: client) { [context] done, total in
      try context.checkCancellation()
      context.count(bytes: done, of: total)
    }
    context.endPhase()
    lock.withLock { moved.bytesPublished += byteCount }
  }

  /// Copies a file into a new local file.
  func download(_ path: RelativePath, to localFile: String, limit: Int) throws {
    try prepare()
    context.begin(.downloading, count: 1)
    try directory.download(path, to: localFile, limit: limit) { [context] done, total in
      try context.checkCancellation()
      context.count(bytes: done, of: total)
    }
    context.endPhase()
  }

  /// Runs `body`, which publishes files as the client of `store`. Meanwhile, a note in the store says
  /// so: it stays if `body` throws or the process is killed.
  func publishing<Result>(
    for store: LocalStore, _ body: () throws -> Result
  ) throws -> Result {
    publications.keep(in: store)
    let result = try body()
    try publications.end()
    return result
  }

  /// Removes the temporary files that unfinished calls of this client left.
  func removeLeftovers(of client: ClientIdentifier) throws {
    try prepare()
    lock.withLock { moved.listings += 1 }
    try directory.removeLeftovers(of: client)
  }

  /// Removes a folder, unless it has entries.
  func removeIfEmpty(_ folder: RelativePath) throws {
    do {
      try remove(folder)
    } catch let error as DirectoryError where error.code == .notEmpty {
      context.environment.logger.debug("folder \(folder) stays: \(error)")
    }
  }

  /// Removes a file of this client, or one of a deleted document or
  /// application.
  func remove(_ path: RelativePath) throws {
    try prepare()
    try directory.remove(path)
  }

  /// Does what has to come before every access to a file.
  private func prepare() throws {
    try context.checkCancellation()
    try confirmRoot()
  }
}
