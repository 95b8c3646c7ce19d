import Foundation
import SyncDirectory
import SyncModel

/// The shared directory as the steps of an operation use it: every call notices
/// cancellation, and counts what it moves.
final class SharedFiles: Sendable {
  /// What was moved so far.
  struct Counts: Sendable {
    var listings = 0
    var bytesRead = 0
    var bytesPublished = 0
  }

  let directory: any SharedDirectory
  let context: OperationContext
  private let lock = NSLock()
  nonisolated(unsafe) private var moved = Counts()
  /// The roots to be found before a file is touched.
  let expectations = RootExpectations()
  /// The note that files are being published.
  let publications = PublicationNote()

  init(_ directory: any SharedDirectory, context: OperationContext) {
    self.directory = directory
    self.context = context
  }

  /// What was moved so far.
  var counts: Counts { lock.withLock { moved } }

  /// A path as the user would name it.
  func userPath(_ path: RelativePath) -> String {
    path == .root ? directory.location : directory.location + "/" + path.description
  }

  /// The names in a folder; an absent folder is an error.
  func list<Name: DirectoryName>(_ folder: RelativePath, as type: Name.Type) throws -> [Name] {
    try context.checkCancellation()
    lock.withLock { moved.listings += 1 }
    return try directory.list(folder, as: type).names
  }

  /// The names in a folder; none if it is absent, which proves nothing.
  func listIfPresent<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> [Name] {
    try context.checkCancellation()
    lock.withLock { moved.listings += 1 }
    return try directory.listIfPresent(folder, as: type).names
  }

  /// So many folders are listed one by one, without looking first whether they are there.
  private static let folderCount = 32

  /// The clients that have folders in a folder, if many folders are to be listed, since markers may
  /// name clients that do not exist; `nil` if each folder is best listed.
  func folders(
    in folder: RelativePath, ofSoMany count: Int
  ) throws -> Set<ClientIdentifier>? {
    guard count > Self.folderCount else { return nil }
    return Set(try listIfPresent(folder, as: ClientIdentifier.self))
  }

  /// The names in a folder, and the foreign ones; none if it is absent.
  func listing<Name: DirectoryName>(
    _ folder: RelativePath, as type: Name.Type
  ) throws -> ParsedListing<Name> {
    try context.checkCancellation()
    lock.withLock { moved.listings += 1 }
    return try directory.listIfPresent(folder, as: type)
  }

  /// The length of a file; 0 if it has gone, or cannot be looked at.
  func byteCount(of path: RelativePath) throws -> Int {
    try context.checkCancellation()
    do {
      return try directory.byteCount(of: path)
    } catch let error where error.concernsOneFile {
      return 0
    }
  }

  /// The length of a file; `nil` if it is not there. One that cannot be looked
  /// at has length 0.
  func measure(_ path: RelativePath) throws -> Int? {
    do {
      try context.checkCancellation()
      return try directory.byteCount(of: path)
    } catch let error as DirectoryError where error.concernsOneFile {
      return error.code == .notFound ? nil : 0
    }
  }

  /// The bytes of a file.
  func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try prepare()
    let bytes = try directory.read(path, limit: limit)
    lock.withLock { moved.bytesRead += bytes.count }
    return bytes
  }

  /// The value in a file with a JSON body.
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

  /// Publishes a file.
  func publish(_ bytes: [UInt8], at path: RelativePath, by client: ClientIdentifier) throws {
    try prepare()
    try publications.begin()
    try directory.publish(bytes, at: path, by: client)
    lock.withLock { moved.bytesPublished += bytes.count }
  }

  /// Publishes a file whose name holds the hash of `bytes`. If a file of that
  /// name has other bytes, it is damaged and makes way.
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

  /// Publishes a value in a file with a JSON body.
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

  /// Removes what unfinished calls of this client left.
  func removeLeftovers(of client: ClientIdentifier) throws {
    try prepare()
    lock.withLock { moved.listings += 1 }
    try directory.removeLeftovers(of: client)
  }

  /// Removes a folder, unless something is left in it.
  func removeIfEmpty(_ folder: RelativePath) throws {
    do {
      try remove(folder)
    } catch let error as DirectoryError where error.code == .notEmpty {
      context.environment.logger.debug("folder \(folder) stays: \(error)")
    }
  }

  /// Removes a file: one of this client's own, or one of a document or an
  /// application that ends.
  func remove(_ path: RelativePath) throws {
    try prepare()
    try directory.remove(path)
  }

  /// Runs before every file that is touched.
  private func prepare() throws {
    try context.checkCancellation()
    try confirmRoot()
  }
}
