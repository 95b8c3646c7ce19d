import Foundation
import SyncDirectory
import SyncModel

/// Checks all files in a shared directory, and changes nothing in it.
struct DirectoryVerifier {
  /// The findings, the names, and the content of the generations' files.
  struct Result {
    var report: VerifyReport
    var inventory: DirectoryInventory
    var generations: [IntegrityKey: GenerationFacts]
  }

  let directory: any SharedDirectory
  let context: OperationContext
  /// The application that the directory should belong to; `nil` for any.
  let application: String?

  /// The most checks while other devices write to the directory.
  private static let attempts = 3

  /// Checks everything. Throws only errors that concern more than a single
  /// file, such as that of a directory that is away.
  func run() throws -> Result {
    try directory.check(for: .reading)
    let scratch = try ScratchFolder(operation: context.verb)
    defer { scratch.remove() }
    var inventory = try lister.run()
    var attempt = 1
    while true {
      var result = try verify(inventory, scratch: scratch.path)
      // Files may seem missing while another device writes them.
      if result.report.findings.isEmpty { return result }
      let now = try lister.run()
      guard now != inventory else { return result }
      if attempt == Self.attempts {
        result.report.leftOut.append(
          "Another device wrote to the directory during the check, so some findings may be temporary. Verify "
            + "again when no device synchronizes.")
        return result
      }
      inventory = now
      attempt += 1
    }
  }

  private var lister: DirectoryLister { DirectoryLister(directory: directory, context: context) }

  private func verify(
    _ inventory: DirectoryInventory, scratch: String
  ) throws -> Result {
    let files = VerifiedFiles(directory, context: context)
    context.begin(.verifying, count: inventory.fileCount)
    inventory.findings.forEach(files.note)
    if let closed = inventory.closed { files.note(closed.finding) }
    try verifyApplications(inventory, files)
    try verifyClients(inventory, files)
    try verifyRemovals(inventory, files)
    var generations: [IntegrityKey: GenerationFacts] = [:]
    var roots: [RootIdentifier: [DocumentName]] = [:]
    for (name, document) in inventory.documents.sorted(by: { $0.key < $1.key }) {
      let found = try verify(name, document, files, scratch: scratch)
      generations.merge(found.generations) { first, _ in first }
      if let root = found.root { roots[root, default: []].append(name) }
    }
    verifyRoots(roots, inventory, files)
    context.endPhase()
    var report = files.report
    report.findings = DamageRemedies(inventory: inventory, generations: generations)
      .amended(report.findings)
    report.sort()
    return Result(report: report, inventory: inventory, generations: generations)
  }

  // MARK: - The application and its clients

  private func verifyApplications(_ inventory: DirectoryInventory, _ files: VerifiedFiles) throws {
    let roots = inventory.applications.sorted { $0.root < $1.root }
    for (index, name) in roots.enumerated() {
      let path = DirectoryLayout.path(of: name)
      if index > 0 {
        files.note(
          .applicationRivals, path, "Two devices created the application at the same time.",
          detail: "\(roots[0].root) counts")
      }
      guard let file = try files.json(path, as: ApplicationFile.self, .application)?.content
      else { continue }
      checkVersion(file.leastReaderVersion, file.requiredFeatures, path, files)
      guard file.root == name.root else {
        files.note(
          .misplaced, path, "The application's file belongs to another directory.",
          detail: "root \(file.root)")
        continue
      }
      if index == 0, let application, file.application != application {
        files.note(
          .applicationOther, path,
          "The directory belongs to the application “\(file.application)”, not to “\(application)”."
        )
      }
    }
  }

  /// Compares the roots that documents belong to with the application files.
  private func verifyRoots(
    _ roots: [RootIdentifier: [DocumentName]], _ inventory: DirectoryInventory,
    _ files: VerifiedFiles
  ) {
    let isEmpty = inventory.applications.isEmpty
    let present = Set(inventory.applications.map(\.root))
    let missing = roots.filter { !present.contains($0.key) }.sorted { $0.key < $1.key }
    for (root, documents) in missing {
      files.note(
        isEmpty ? .applicationMissing : .rootMissing,
        DirectoryLayout.path(of: ApplicationName(root: root)),
        isEmpty
          ? "There is no application file: nothing can be synchronized here."
          : "A document belongs to a directory whose application file is not here: its devices do "
            + "not synchronize here.",
        detail: documents.map { "document \($0)" }.joined(separator: ", "))
    }
    guard isEmpty, missing.isEmpty else { return }
    files.note(
      VerifyReport.Finding(
        .applicationMissing, path: "application.….json",
        "There is no application file: nothing can be synchronized here."))
  }

  private func verifyRemovals(_ inventory: DirectoryInventory, _ files: VerifiedFiles) throws {
    for name in inventory.clientRemovals.sorted(by: { $0.description < $1.description }) {
      let path = DirectoryLayout.path(of: name)
      let whole = try files.json(path, name.hash, as: ClientRemovalFile.self, .clientDevice)
      guard let file = whole?.content, file.client != name.client else { continue }
      files.note(
        .misplaced, path, "The note of a removal names another client.",
        detail: "client \(file.client)")
    }
  }

  private func verifyClients(_ inventory: DirectoryInventory, _ files: VerifiedFiles) throws {
    for name in inventory.clientDevices.sorted(by: { $0.description < $1.description }) {
      let path = DirectoryLayout.path(of: name)
      guard let file = try files.json(path, as: ClientFile.self, .clientDevice)?.content,
        file.client != name.client
      else { continue }
      files.note(
        .misplaced, path, "The description belongs to another client.",
        detail: "client \(file.client)")
    }
    let described = Set(inventory.clientDevices.map(\.client))
    let lives = inventory.documents.values.flatMap(\.lives.values)
    let present = lives.reduce(into: Set<ClientIdentifier>()) { $0.formUnion($1.clients) }
    for client in present.subtracting(described).sorted() {
      files.note(
        .clientUndescribed,
        DirectoryLayout.path(of: ClientDeviceName(client: client, revision: 1)),
        "A device has files here and no description.")
    }
  }

  // MARK: - Documents

  private func verify(
    _ name: DocumentName, _ document: DirectoryInventory.Document, _ files: VerifiedFiles,
    scratch: String
  ) throws -> (generations: [IntegrityKey: GenerationFacts], root: RootIdentifier?) {
    let layout = DirectoryLayout.Document(name)
    if document.generations.isEmpty, document.deleted.isEmpty, document.lives.isEmpty {
      files.note(
        .documentEmpty, layout.folder, "The document's folder has no file of DocumentSync.")
    }
    var roots: [IntegrityKey: RootIdentifier] = [:]
    for generation in document.generations.sorted() {
      roots[generation.key] = try verify(generation, in: layout, document, files)
    }
    for tombstone in document.deleted.sorted(by: { $0.description < $1.description }) {
      try verify(tombstone, in: layout, files)
    }
    var found: [IntegrityKey: GenerationFacts] = [:]
    for (key, life) in document.lives.sorted(by: { $0.key < $1.key }) {
      let generation = layout.generation(key)
      let ordinal = document.ordinals[key]?.upperBound
      let isDeleted = document.isDeleted(key)
      if isDeleted, life.fileCount > 0 {
        files.note(
          .deletedNotCleared, generation.folder,
          "The generation was deleted, and files of it are still there.",
          detail: "\(life.fileCount) files")
      } else if ordinal == nil {
        files.note(
          .generationFileMissing, layout.folder,
          "A generation's folder is there, and the file that describes it is missing.",
          detail: "folder \(key)")
      }
      let verifier = GenerationVerifier(files: files, names: life, scratch: scratch)
      found[key] = try verifier.run(
        GenerationFacts(generation, ordinal: ordinal, root: roots[key]),
        isCurrent: !isDeleted && (document.counting?.key ?? key) == key)
    }
    let counting = document.counting.flatMap { document.isDeleted($0.key) ? nil : $0.key }
    return (found, counting.flatMap { roots[$0] })
  }

  private func verify(
    _ name: GenerationName, in layout: DirectoryLayout.Document,
    _ document: DirectoryInventory.Document, _ files: VerifiedFiles
  ) throws -> RootIdentifier? {
    let path = layout.path(of: name)
    if document.lives[name.key] == nil, !document.isDeleted(name.key),
      document.counting == name
    {
      files.note(
        .generationFolderMissing, layout.generation(name.key).folder,
        "A generation's file is there, and its folder is missing.", detail: path.name)
    }
    guard let file = try files.json(path, as: GenerationFile.self, .generation)?.content else {
      return nil
    }
    checkVersion(file.leastReaderVersion, file.requiredFeatures, path, files)
    guard file.document == layout.name, file.generation == name.key, file.ordinal == name.ordinal
    else {
      files.note(
        .misplaced, path, "The generation's file belongs to another document or generation.",
        detail: "document \(file.document), generation \(file.ordinal) \(file.generation)")
      return nil
    }
    if let previous = file.previous, !document.isDeleted(name.key),
      !(document.ordinals[previous].map { $0.lowerBound < name.ordinal } ?? false)
    {
      files.note(
        .generationPreviousMissing, path,
        "The generation replaces another one, whose file is missing.",
        detail: "generation \(previous)")
    }
    return file.root
  }

  private func verify(
    _ name: DeletedName, in layout: DirectoryLayout.Document, _ files: VerifiedFiles
  ) throws {
    let path = layout.path(of: name)
    guard let file = try files.json(path, as: TombstoneFile.self, .tombstone)?.content,
      file.document != layout.name || file.ordinal != name.ordinal || file.client != name.client
    else { return }
    files.note(
      .misplaced, path, "The tombstone belongs to another document or generation.",
      detail: "document \(file.document), generation \(file.ordinal)")
  }

  private func checkVersion(
    _ leastReader: Int, _ features: [String], _ path: RelativePath, _ files: VerifiedFiles
  ) {
    do {
      try FormatVersion.check(
        leastReader: leastReader, features: features, operation: context.verb,
        path: path.description)
    } catch {
      files.note(
        .newerVersion, path, "The file needs a newer version of DocumentSync.",
        detail: error.detail)
    }
  }
}

/// A folder for unpacked files, which the verifier removes at the end.
struct ScratchFolder {
  let path: String
  private let operation: String

  init(operation: String) throws {
    self.operation = operation
    path = NSTemporaryDirectory() + "/docsync-verify-" + UUID().uuidString
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    } catch {
      throw SyncError(
        .localFile, operation: operation, path: path,
        message: "A folder for unpacking could not be made.",
        remedy: "Check that the system's folder for temporary files has space and may be written.",
        detail: "\(error)", underlying: error)
    }
  }

  /// Removes the folder and its content.
  func remove() {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      // The system clears its folder for temporary files itself.
    }
  }
}
