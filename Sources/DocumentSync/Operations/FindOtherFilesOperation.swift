import SyncDirectory
import SyncModel

/// Looks for the files of others in a directory that belongs to no application.
final class FindOtherFilesOperation: SyncOperation<[String]>, @unchecked Sendable {
  private let directory: any SharedDirectory

  init(directory: any SharedDirectory, environment: SyncEnvironment) {
    self.directory = environment.retrying(directory)
    super.init("look at the directory", environment: environment)
  }

  override func perform() async throws -> [String] {
    try await blocking { [self] in
      begin(.listing)
      try directory.check(for: .reading)
      let files = SharedFiles(directory, context: OperationContext(self))
      let root = try files.listing(.root, as: RootName.self)
      var others = root.foreign.filter { !$0.isOfSystem }.map(\.name)
      for name in root.names {
        switch name {
        case .application: return []
        case .readme: if try !isOurReadme(files) { others.append(name.description) }
        case .folder(let folder): if try !isOurs(folder, files) { others.append(name.description) }
        }
      }
      return others.sorted()
    }
  }

  private func isOurReadme(_ files: SharedFiles) throws -> Bool {
    let text = Array(DirectoryLayout.readmeText.utf8)
    return try files.measure(DirectoryLayout.readme) == text.count
      && files.read(DirectoryLayout.readme, limit: text.count) == text
  }

  /// Returns whether a folder with one of our names contains nothing but our names, as after all
  /// documents were removed.
  private func isOurs(_ folder: RootName.Folder, _ files: SharedFiles) throws -> Bool {
    func foreign<Name: DirectoryName>(_ path: RelativePath, _ type: Name.Type) throws -> Bool {
      try files.listing(path, as: type).foreign.contains { !$0.isOfSystem }
    }
    return switch folder {
    case .clientDevices: try !foreign(DirectoryLayout.clientDevices, ClientEntryName.self)
    case .temporary: try !foreign(DirectoryLayout.temporary, ClientIdentifier.self)
    case .documents: try !foreign(DirectoryLayout.documents, DocumentName.self)
    // This version puts nothing into it.
    case .encryption:
      try files.listing(DirectoryLayout.encryption, as: DocumentName.self).foreign.isEmpty
    }
  }
}
