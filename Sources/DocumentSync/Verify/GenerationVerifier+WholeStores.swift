import Foundation
import SyncDirectory
import SyncModel
import SyncStore

extension GenerationVerifier {
  /// Downloads each whole store in turn, opens its database, and stores the
  /// facts of the intact ones.
  func readWholeStores(_ facts: inout GenerationFacts) throws {
    for (client, listed) in names.wholeStores.sorted(by: { $0.key < $1.key }) {
      for name in listed.sorted() {
        let path = facts.layout.path(of: name, by: client)
        if let found = try read(name, at: path, by: client, facts) {
          facts.add(found)
        }
        files.context.report { $0.completedCount += 1 }
      }
    }
  }

  /// Compares the whole stores with the other files.
  func checkWholeStores(_ facts: GenerationFacts) {
    for store in facts.wholeStores {
      for (client, entry) in store.vector.entries {
        let found = facts.changes[client] ?? NumberedFacts()
        if found.differs(entry.number, from: entry.hash) {
          files.note(
            .dependencyDiffers, store.path,
            "It contains another content of change set \(entry.number) of \(client) than is there.",
            detail: "it names \(entry.hash.nameFragment)")
        }
        let head = max(
          found.greatest, facts.markers[client]?.file.changeHead?.number ?? 0,
          facts.lowestKept(of: client) - 1)
        let isCleared = facts.changes[client] == nil && facts.markers[client] == nil
        guard entry.number > head, !isCleared else { continue }
        files.note(
          .wholeStoreAhead, store.path,
          "It contains change set \(entry.number) of \(client), of which \(head) is the last that "
            + "is known.")
      }
    }
    checkJoining(facts)
  }

  /// Checks that a device can join: it takes one whole store, and the change
  /// sets after it.
  private func checkJoining(_ facts: GenerationFacts) {
    // No device needs the change sets of a retired client after the cut.
    var cleared = facts.changes.compactMapValues { $0.lowestKept > 1 ? $0.lowestKept - 1 : nil }
    for retired in facts.markers.values.flatMap(\.file.retired) {
      guard let number = cleared[retired.client], let cut = retired.cut else { continue }
      cleared[retired.client] = min(number, cut)
    }
    let commands = facts.commands.compactMapValues { $0.lowestKept > 1 ? $0.lowestKept - 1 : nil }
    let isPossible = facts.wholeStores.contains { store in
      cleared.allSatisfy { store.vector.number(of: $0.key) >= $0.value }
        && commands.allSatisfy { store.commands.number(of: $0.key) >= $0.value }
    }
    guard !isPossible else { return }
    files.note(
      .joinImpossible, facts.layout.wholeStores,
      "New devices cannot join: the directory has no usable copy of the whole database.",
      detail: cleared.isEmpty
        ? nil
        : cleared.sorted { $0.key < $1.key }.map { "up to \($0.value) of \($0.key)" }
          .joined(separator: ", "))
  }

  // MARK: - One whole store

  private func read(
    _ name: WholeStoreName, at path: RelativePath, by client: ClientIdentifier,
    _ facts: GenerationFacts
  ) throws -> GenerationFacts.WholeStore? {
    let file = scratch + "/file"
    let database = scratch + "/database"
    defer { Self.remove([file] + ["", "-journal", "-wal", "-shm"].map { database + $0 }) }
    do {
      try files.context.checkCancellation()
      try files.directory.download(path, to: file, limit: 1 << 40) { _, _ in
        try files.context.checkCancellation()
      }
      return try examine(file, database, name, path, client, facts)
    } catch let error as DirectoryError where error.code != .localFile {
      try files.note(error, path)
    } catch let error as DirectoryError {
      files.leaveOut("\(path) was not checked: \(error)")
    } catch let error as SyncError where [.noLocalSpace, .localFile].contains(error.code) {
      files.leaveOut("\(path) was not checked: \(error)")
    }
    return nil
  }

  private func examine(
    _ file: String, _ database: String, _ name: WholeStoreName, _ path: RelativePath,
    _ client: ClientIdentifier, _ facts: GenerationFacts
  ) throws -> GenerationFacts.WholeStore? {
    let context = files.context.silent
    let reader = WholeStoreFile(context)
    let checked: WholeStoreFile.Checked
    do {
      checked = try reader.check(file)
    } catch let error as CodecError {
      let isAsWritten = name.hash.matches(try Self.hash(of: file, context))
      files.note(files.finding(error, path, isAsWritten: isAsWritten))
      return nil
    }
    files.count(bytes: checked.byteCount)
    guard name.hash.matches(checked.hash) else {
      files.note(
        .misnamed, path, "The file is intact, and its content is not the one in its name.",
        detail: "its hash begins with \(checked.hash.nameFragment)")
      return nil
    }
    let header = checked.header
    guard
      facts.owns(root: header.root, document: header.document, generation: header.generation),
      facts.ordinal.map({ $0 == header.generationOrdinal }) ?? true,
      header.client == client, header.number == name.number
    else {
      files.note(
        .misplaced, path, "The whole store belongs to another document, client or number.",
        detail: "root \(header.root), document \(header.document), generation "
          + "\(header.generationOrdinal) \(header.generation), client \(header.client), number \(header.number)"
      )
      return nil
    }
    do {
      try reader.expand(checked, at: file, to: database)
    } catch let error as CodecError {
      files.note(
        .wholeStoreDamaged, path, "The database in the whole store is not the one that it names.",
        detail: error.what)
      return nil
    }
    guard try isSound(database, header, path) else { return nil }
    return GenerationFacts.WholeStore(
      client: client, number: name.number, hash: checked.hash, path: path, vector: header.vector,
      commands: header.commands)
  }

  /// Examines the database of a whole store. Returns whether a device may join
  /// from it.
  private func isSound(
    _ database: String, _ header: WholeStoreHeader, _ path: RelativePath
  ) throws -> Bool {
    let examination = try WholeStoreExamination(
      database, header: header, checkCancellation: files.context.checkCancellation)
    for fault in examination.faults {
      files.note(fault.kind, path, fault.message, detail: fault.detail)
    }
    return examination.isSound
  }

  private static func hash(of path: String, _ context: OperationContext) throws -> ContentHash {
    var hasher = ContentHasher()
    try LocalFileHandle(reading: path, operation: context.verb).forEachChunk(of: 1 << 20) {
      try context.checkCancellation()
      hasher.update($0)
    }
    return hasher.hash
  }

  private static func remove(_ paths: [String]) {
    for path in paths where FileManager.default.fileExists(atPath: path) {
      do {
        try FileManager.default.removeItem(atPath: path)
      } catch {
        // The verifier removes the whole folder at the end.
      }
    }
  }
}
