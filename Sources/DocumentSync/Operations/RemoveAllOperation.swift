import SyncDirectory
import SyncModel

/// Removes all files of an application from a shared directory: its documents,
/// the descriptions of its clients, and last its own file.
///
/// The documents' tombstones stay, which tell the other devices, and so do the
/// files with the documents' names. Files that do not belong to DocumentSync
/// stay as well, and the report names them. If the operation is interrupted,
/// the next call completes it.
public final class RemoveAllOperation: SyncOperation<RemovalReport>, @unchecked Sendable {
  private let directory: any SharedDirectory
  private let applicationIdentifier: String?
  private let client: ClientIdentifier
  private let clientDescription: String
  private let isPreview: Bool

  /// Creates an operation that removes all files on behalf of a client.
  ///
  /// - Parameters:
  ///   - applicationIdentifier: The application; `nil` accepts any.
  ///   - isPreview: Whether to change nothing.
  package init(
    directory: any SharedDirectory, applicationIdentifier: String? = nil,
    by client: ClientIdentifier, described clientDescription: String, isPreview: Bool = false,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.directory = environment.retrying(directory)
    self.applicationIdentifier = applicationIdentifier
    self.client = client
    self.clientDescription = clientDescription
    self.isPreview = isPreview
    super.init("remove all synchronized data", environment: environment)
  }

  override func perform() async throws -> RemovalReport {
    try await blocking { [self] in
      try SyncDescriptions.check(clientDescription, verb)
      begin(.listing)
      try directory.check(for: isPreview ? .reading : .writing)
      let files = SharedFiles(directory, context: OperationContext(self))
      let application = try ApplicationSteps(files).require(applicationIdentifier)
      var report = RemovalReport(isPreview: isPreview)
      report.clients = try ApplicationSteps(files).clients()
      try removeDocuments(files, root: application.root, &report)
      try removeApplication(files, &report)
      report.remaining.sort()
      return report
    }
  }

  private func removeDocuments(
    _ files: SharedFiles, root: RootIdentifier, _ report: inout RemovalReport
  ) throws {
    let steps = DocumentSteps(files)
    let listing = try files.listing(DirectoryLayout.documents, as: DocumentName.self)
    report.remaining += DocumentFiles.paths(listing.foreign, in: DirectoryLayout.documents)
      .map(\.description)
    for name in listing.names.sorted() {
      begin(.measuring)
      let before = try steps.find(name)
      guard
        let inventory = try steps.bury(
          name, root: root, by: client, described: clientDescription, isPreview: isPreview)
      else {
        // No file shows whose folder this is.
        report.remaining.append(DirectoryLayout.Document(name).folder.description)
        continue
      }
      try remove(inventory, files, &report)
      guard let found = try steps.find(name) else { continue }
      report.documents.append(found.description)
      if let deletion = found.deletion, before?.isDeleted == false, !isPreview {
        send(.documentDeleted(identifier: found.file.identifier, deletion))
      }
    }
    report.documents.sort { $0.identifier < $1.identifier }
  }

  /// Removes the other files, and the application's file last, so that the next
  /// call can complete an interrupted one.
  private func removeApplication(
    _ files: SharedFiles, _ report: inout RemovalReport
  ) throws {
    begin(.measuring)
    let root = try files.listing(.root, as: RootName.self)
    report.remaining += DocumentFiles.paths(root.foreign, in: .root).map(\.description)
    let steps = DocumentFiles(files)
    var inventory = DocumentFiles.Inventory()
    for client in try files.listIfPresent(DirectoryLayout.temporary, as: ClientIdentifier.self) {
      if !isPreview { try files.removeLeftovers(of: client) }
      inventory.folders.append(DirectoryLayout.temporary(of: client))
    }
    inventory.folders.append(DirectoryLayout.temporary)
    try steps.add(DirectoryLayout.clientDevices, as: ClientEntryName.self, to: &inventory)
    inventory.folders.append(DirectoryLayout.documents)
    if root.names.contains(.readme) {
      let path = DirectoryLayout.readme
      inventory.files.append(.init(path: path, byteCount: try files.byteCount(of: path)))
    }
    for case .application(let name) in root.names {
      let path = DirectoryLayout.path(of: name)
      inventory.files.append(.init(path: path, byteCount: try files.byteCount(of: path)))
    }
    if root.names.contains(.folder(.encryption)) {
      report.remaining.append(DirectoryLayout.encryption.description)
    }
    try remove(inventory, files, &report)
  }

  private func remove(
    _ inventory: DocumentFiles.Inventory, _ files: SharedFiles, _ report: inout RemovalReport
  ) throws {
    if !isPreview { try DocumentFiles(files).remove(inventory) }
    report.fileCount += inventory.files.count
    report.byteCount += inventory.byteCount
    report.remaining += inventory.foreignNames
  }
}
