import SyncDirectory
import SyncModel

/// Finds, creates and describes the application and the clients of a shared
/// directory.
struct ApplicationSteps {
  let files: SharedFiles
  private var context: OperationContext { files.context }

  init(_ files: SharedFiles) { self.files = files }

  /// Returns the application that the directory belongs to; `nil` if there is
  /// none.
  ///
  /// If clients created several files without seeing each other's, every client
  /// takes the one with the lowest root. So an unreadable file is an error, and
  /// is never skipped.
  func find() throws -> ApplicationFile? {
    let roots = try files.list(.root, as: RootName.self).compactMap { name in
      if case .application(let name) = name { name.root } else { nil }
    }
    guard let root = roots.min() else { return nil }
    return try read(root)
  }

  /// Does the same as ``find()``; throws if there is no application, or if it
  /// is not `identifier`.
  func require(_ identifier: String?) throws -> ApplicationFile {
    guard let found = try find() else { throw try absent() }
    try check(found, is: identifier)
    return found
  }

  /// The error of a directory without an application: if it has documents, the
  /// application's file is lost or has not arrived.
  private func absent() throws -> SyncError {
    let documents = try DocumentSteps(files).look()
    guard
      documents.found.contains(where: { !$0.isDeleted })
        || documents.unreadable.contains(where: { !$0.isDeleted })
    else { return missing }
    return context.error(
      .malformedFile, path: files.directory.location,
      "There are documents, and the file that says to which application they belong is missing, or "
        + "has not arrived.",
      remedy: DocumentDescription.Unreadable.remedy)
  }

  /// Finds the application, or creates it if permitted.
  func findOrCreate(
    _ identifier: String?, by client: ClientIdentifier, createIfMissing: Bool,
    described: SyncDescriptions = SyncDescriptions()
  ) throws -> (file: ApplicationFile, created: Bool) {
    if let found = try find() {
      try check(found, is: identifier)
      return (found, false)
    }
    guard createIfMissing, let identifier else { throw missing }
    try publishReadme(by: client)
    var generator = context.environment.generator
    let mine = ApplicationFile(
      application: identifier, root: .random(using: &generator), creator: client,
      createdMilliseconds: context.environment.now(),
      description: described.application, userInfo: described.applicationInfo)
    try files.publish(
      mine, as: .application, at: DirectoryLayout.path(of: ApplicationName(root: mine.root)),
      by: client)
    // Another client may have created one in the meantime.
    guard let counts = try find(), counts.root != mine.root else { return (mine, true) }
    try check(counts, is: identifier)
    return (counts, false)
  }

  /// Publishes the description of a client, unless its newest file has the same
  /// content.
  ///
  /// - Parameters:
  ///   - userInfo: The notes; `nil` leaves the earlier ones.
  ///   - document: The document of its store; `nil` leaves the earlier one.
  ///   - hasLeft: Whether its store was taken out of sync.
  func describe(
    _ client: ClientIdentifier, as description: String, ancestor: ClientIdentifier?,
    userInfo: SyncUserInfo? = nil, document: DocumentName? = nil, hasLeft: Bool = false
  ) throws {
    let revisions = try files.listIfPresent(
      DirectoryLayout.clientDevices, as: ClientDeviceName.self
    ).filter { $0.client == client }.map(\.revision)
    let now = context.environment.now()
    var file = ClientFile(
      client: client, description: description, platform: context.environment.platform,
      ancestor: ancestor, registeredMilliseconds: now, document: document, userInfo: userInfo,
      leftMilliseconds: hasLeft ? now : nil)
    for revision in revisions.sorted(by: >) {
      let path = DirectoryLayout.path(of: ClientDeviceName(client: client, revision: revision))
      do {
        let said = try files.read(path, as: ClientFile.self, .clientDevice)
        file.registeredMilliseconds = said.registeredMilliseconds
        file.userInfo = userInfo ?? said.userInfo
        file.document = document ?? said.document
        file.ancestor = ancestor ?? said.ancestor
        if hasLeft { file.leftMilliseconds = said.leftMilliseconds ?? now }
        if said == file, revision == revisions.max() { return }
        break
      } catch let error where error.concernsOneFile {
        // The file is published again; an earlier revision may contain the
        // client's values.
        context.environment.logger.notice("client \(client): \(error)")
      }
    }
    try files.publish(
      file, as: .clientDevice,
      at: DirectoryLayout.path(
        of: ClientDeviceName(client: client, revision: (revisions.max() ?? 0) + 1)),
      by: client)
  }

  /// Records for all clients that a client was removed, unless a removal of it
  /// is recorded.
  func noteRemoval(
    of client: ClientIdentifier, by remover: ClientIdentifier, described description: String
  ) throws {
    let names = try files.listIfPresent(
      DirectoryLayout.clientDevices, as: ClientRemovalName.self)
    guard !names.contains(where: { $0.client == client }) else { return }
    let bytes = try Envelope.encodeJSON(
      ClientRemovalFile(
        client: client, by: remover, byDescription: description,
        removedMilliseconds: context.environment.now()),
      type: .clientDevice)
    let name = ClientRemovalName(client: client, hash: HashFragment(ContentHash(of: bytes)))
    try files.publish(bytes, at: DirectoryLayout.path(of: name), by: remover)
  }

  /// Returns the descriptions of the clients, with their removals, in order. A
  /// client whose file cannot be read has no description.
  func clients() throws -> [ClientDescription] {
    var latest: [ClientIdentifier: ClientDeviceName] = [:]
    var removals: [ClientIdentifier: ClientRemovalName] = [:]
    for name in try files.listIfPresent(DirectoryLayout.clientDevices, as: ClientEntryName.self) {
      switch name {
      case .device(let name):
        if latest[name.client].map({ $0.revision < name.revision }) ?? true {
          latest[name.client] = name
        }
      case .removal(let name): removals[name.client] = name
      }
    }
    return try Set(latest.keys).union(removals.keys).sorted().map { client in
      var description = try latest[client].flatMap(read) ?? ClientDescription(client: client)
      if description.leftMilliseconds != nil { description.status = .left }
      if let removal = removals[client] {
        description.status = .removed
        description.removal = try read(removal)
      }
      return description
    }
  }

  private func read(_ name: ClientDeviceName) throws -> ClientDescription? {
    do {
      let file = try files.read(
        DirectoryLayout.path(of: name), as: ClientFile.self, .clientDevice)
      var description = ClientDescription(
        client: name.client, description: file.description, platform: file.platform,
        ancestor: file.ancestor, registeredMilliseconds: file.registeredMilliseconds)
      description.userInfo = file.userInfo ?? [:]
      description.document = file.document
      description.leftMilliseconds = file.leftMilliseconds
      return description
    } catch let error where error.concernsOneFile {
      context.environment.logger.notice("client \(name.client): \(error)")
      return nil
    }
  }

  private func read(_ name: ClientRemovalName) throws -> DocumentDescription.Deletion? {
    do {
      let file = try files.read(
        DirectoryLayout.path(of: name), as: ClientRemovalFile.self, .clientDevice)
      return DocumentDescription.Deletion(
        client: file.by, clientDescription: file.byDescription,
        milliseconds: file.removedMilliseconds)
    } catch let error where error.concernsOneFile {
      context.environment.logger.notice("removal of \(name.client): \(error)")
      return nil
    }
  }

  private func read(_ root: RootIdentifier) throws -> ApplicationFile {
    let path = DirectoryLayout.path(of: ApplicationName(root: root))
    let file = try files.read(path, as: ApplicationFile.self, .application)
    try FormatVersion.check(
      leastReader: file.leastReaderVersion, features: file.requiredFeatures,
      operation: context.verb, path: files.userPath(path))
    guard file.root == root else {
      throw context.error(
        .malformedFile, path: files.userPath(path),
        "The application's file belongs to another directory.",
        remedy: "Move the file out of the shared directory if it was copied there.",
        detail: "root \(file.root)")
    }
    return file
  }

  private func check(_ found: ApplicationFile, is identifier: String?) throws {
    guard let identifier, found.application != identifier else { return }
    throw context.error(
      .otherApplication, path: files.directory.location,
      "The shared directory belongs to the application “\(found.application)”, not to "
        + "“\(identifier)”.",
      remedy: "Use another directory, or name the application “\(found.application)”.")
  }

  private var missing: SyncError {
    context.error(
      .applicationMissing, path: files.directory.location,
      "Nothing has been synchronized through this directory yet.",
      remedy: "Check that this is the shared directory and that it has arrived on this device, "
        + "or begin with \(.create).")
  }

  private func publishReadme(by client: ClientIdentifier) throws {
    do {
      try files.publish(
        Array(DirectoryLayout.readmeText.utf8), at: DirectoryLayout.readme, by: client)
    } catch let error as DirectoryError where error.code == .exists {
      // The text is another version's, or the user's own: it stays.
      context.environment.logger.debug("README.txt says something else: \(error)")
    }
  }
}
