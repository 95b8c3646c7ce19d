import DocumentSync
import SyncDirectory
import SyncModel

/// A change set from this store or from the shared directory.
struct ChangeSetFile {
  var changeSet: SyncChangeSet
  var hash: ContentHash
  var byteCount: Int

  private init(_ bytes: [UInt8]) throws {
    changeSet = try ChangeSetCodec.decode(bytes)
    hash = ContentHash(of: bytes)
    byteCount = bytes.count
  }

  /// Finds the change set that a reference names.
  static func find(
    _ reference: ChangeSetReference, of manager: DocumentSyncManager
  ) throws -> ChangeSetFile {
    let own = manager.binding.client
    let client = try author(of: reference, manager)
    guard client == own else {
      return try read(reference.number, by: client, of: manager)
    }
    let sealed = try manager.store.sealedChangeSets().first { $0.number == reference.number }
    guard let sealed else {
      let head = try manager.store.head()?.number ?? 0
      throw Failure(
        code: "noSuchChangeSet",
        message: head == 0
          ? "This device has not made a change set yet."
          : "This device has no change set \(reference.number). Its last one is \(head).",
        path: manager.path,
        remedy: "List what there is with “docsync log \(shellWord(manager.path))”.")
    }
    guard sealed.isKept else { return try read(reference.number, by: own, of: manager) }
    return try ChangeSetFile(manager.store.sealedBytes(reference.number))
  }

  /// Returns the author that a reference names.
  static func author(
    of reference: ChangeSetReference, _ manager: DocumentSyncManager
  ) throws -> ClientIdentifier {
    try reference.prefix.map { try author($0, of: manager) } ?? manager.binding.client
  }

  /// Returns the client whose identifier begins with `prefix`; throws unless exactly one known
  /// client's does.
  private static func author(
    _ prefix: String, of manager: DocumentSyncManager
  ) throws -> ClientIdentifier {
    var known = Set(try manager.store.status().vector.entries.keys)
    known.insert(manager.binding.client)
    var matching = known.filter { $0.description.hasPrefix(prefix) }
    if matching.isEmpty {
      let listed = try manager.directory.listIfPresent(
        layout(manager).syncChanges, as: ClientIdentifier.self)
      matching = Set(listed.names.filter { $0.description.hasPrefix(prefix) })
    }
    guard let client = matching.first, matching.count == 1 else {
      throw Failure(
        code: matching.isEmpty ? "noSuchClient" : "ambiguousClient",
        message: matching.isEmpty
          ? "No device's identifier begins with “\(printable(prefix))”."
          : "The identifiers of \(matching.count) devices begin with “\(printable(prefix))”.",
        path: manager.path,
        remedy: "List them with “docsync clients \(shellWord(manager.path))”.")
    }
    return client
  }

  /// Reads a change set of a client from the directory. Skips invalid files with the same number.
  private static func read(
    _ number: UInt64, by client: ClientIdentifier, of manager: DocumentSyncManager
  ) throws -> ChangeSetFile {
    try manager.directory.check(for: .reading)
    let layout = layout(manager)
    let listed = try manager.directory.listIfPresent(
      layout.syncChanges(of: client), as: ChangeSetName.self
    ).names
    let last = listed.map(\.number).max()
    var failure = Failure(
      code: "noSuchChangeSet",
      message: "Change set \(number) of \(ClientNames.short(client)) is not in the directory."
        + (last.map { " Its last one there is \($0)." } ?? ""),
      path: manager.directory.location + "/" + layout.syncChanges(of: client).description,
      remedy: "If it is newer, wait until it has arrived. List what there is with “docsync log "
        + "\(shellWord(manager.path))”.")
    for name in listed.filter({ $0.number == number }).sorted() {
      let path = layout.path(of: name, by: client)
      do {
        let found = try ChangeSetFile(
          manager.directory.read(path, limit: CodecLimits.default.fileBytes))
        let header = found.changeSet.header
        guard name.hash.matches(found.hash), header.client == client, header.number == number
        else { throw CodecError(.badChecksum, "name of the file") }
        return found
      } catch let error as CodecError {
        failure = Failure(error)
        failure.path = manager.directory.location + "/" + path.description
      }
    }
    throw failure
  }

  private static func layout(_ manager: DocumentSyncManager) -> DirectoryLayout.Generation {
    DirectoryLayout.Document(manager.binding.document).generation(manager.binding.generation)
  }
}
