import Foundation
import SyncDirectory
import SyncModel
import SyncStore

extension WholeStoreSteps {
  /// The most bytes of a file that is read.
  private static let limit = 1 << 40
  /// The default for the most costly whole stores that are tried. These take
  /// far more space here than in the directory, which may have any number of
  /// files that only look like whole stores.
  private static let greatestTries = 64
  /// A whole store is costly if its database has more than this many times the
  /// bytes of its file, and more than ``leastCostlyByteCount``.
  private static let greatestRatio = 64
  /// The greatest length in bytes of a database that is never costly.
  private static let leastCostlyByteCount = 4 << 20

  /// Downloads the best usable whole store into the temporary file `database`
  /// beside a store, with the permissions of that store.
  ///
  /// The function compares the database with the header of the whole store, so
  /// that the caller may rely on the header. It skips a whole store that is
  /// damaged, or differs from its header. If one has gone since it was listed,
  /// the function lists the folders again: a client that removes a whole store
  /// has a newer one.
  ///
  /// Markers only decide the order in which whole stores are tried: forged
  /// markers may describe any number of them as the best. So the function tries
  /// all of them; those whose databases are much longer than their files come
  /// last, and only up to a number.
  ///
  /// Throws `wholeStoreMissing` if no whole store is usable, and
  /// `newerVersionNeeded` if only a newer version can read those that are left;
  /// the error lists the fault of each.
  ///
  /// - Parameters:
  ///   - unsound: The paths of whole stores that are not tried again.
  ///   - greatestCount: The most costly whole stores to try.
  ///   - onUnsound: Called at the end with the paths of whole stores whose
  ///     files are intact and that will never be usable, if there are any.
  ///   - isWanted: Selects suitable whole stores.
  func download(
    _ document: GenerationFile, beside siblings: LocalSiblings,
    passingOver unsound: Set<String> = [], atMost greatestCount: Int = Self.greatestTries,
    onUnsound: ([String]) throws -> Void = { _ in },
    where isWanted: (Candidate) -> Bool = { _ in true }
  ) throws -> WholeStoreFile.Checked {
    var failures = WholeStoreFailures()
    let found = Result {
      try find(
        document, beside: siblings, passingOver: unsound, atMost: greatestCount, &failures,
        where: isWanted)
    }
    if !failures.forEver.isEmpty { try onUnsound(failures.forEver) }
    if let checked = try found.get() { return checked }
    let layout = DirectoryLayout.Document(document.document).generation(document.generation)
    throw failures.error(layout, files)
  }

  /// Returns the first usable whole store; `nil` if there is none.
  private func find(
    _ document: GenerationFile, beside siblings: LocalSiblings, passingOver unsound: Set<String>,
    atMost greatestCount: Int, _ failures: inout WholeStoreFailures,
    where isWanted: (Candidate) -> Bool
  ) throws -> WholeStoreFile.Checked? {
    let layout = DirectoryLayout.Document(document.document).generation(document.generation)
    var isListedAgain = false
    var tried = 0
    listing: while true {
      let listed = try list(document)
      var waiting = listed.candidates.filter(isWanted).map { (candidate: $0, isCostly: false) }
      var position = 0
      while position < waiting.count {
        let (candidate, isCostly) = waiting[position]
        position += 1
        let path = layout.path(of: candidate.name, by: candidate.client)
        guard !failures.contains(path), !unsound.contains(path.description) else { continue }
        if isCostly {
          guard tried < greatestCount else {
            failures.limit = greatestCount
            return nil
          }
          tried += 1
        }
        do {
          guard
            let checked = try get(
              candidate, at: path, of: document, beside: siblings, whateverItCosts: isCostly)
          else {
            waiting.append((candidate, true))
            continue
          }
          guard isWanted(listed.described(candidate, by: checked.header)) else {
            throw SyncError(
              .malformedFile, operation: context.verb, path: files.userPath(path),
              message: "The change sets in the copy of the database are not those in the markers.",
              remedy: "Run \(elsewhere: .upload) on a device that has the document.")
          }
          return checked
        } catch let error where error is UnsoundWholeStore || error.concernsOneFile {
          context.environment.logger.notice("whole store \(path): \(error)")
          failures.add(path, error)
          guard let error = error as? DirectoryError, error.code == .notFound else { continue }
          continue listing
        }
      }
      // A whole store may have replaced another while the folders were listed.
      guard failures.isEmpty, !isListedAgain else { return nil }
      isListedAgain = true
    }
  }

  /// Downloads a whole store, checks all of it, and leaves its database at
  /// `database`. Returns `nil` if the database is much longer than the file and
  /// `whateverItCosts` is not set.
  private func get(
    _ candidate: Candidate, at path: RelativePath, of document: GenerationFile,
    beside siblings: LocalSiblings, whateverItCosts: Bool
  ) throws -> WholeStoreFile.Checked? {
    let (database, file) = (siblings.temporary("database"), siblings.temporary("store"))
    // SQLite would play the journal of a skipped database into the next one.
    for leftover in [file] + ["", "-journal", "-wal", "-shm"].map({ database + $0 })
    where FileManager.default.fileExists(atPath: leftover) {
      try FileManager.default.removeItem(atPath: leftover)
    }
    try files.download(path, to: file, limit: Self.limit)
    let checked = try WholeStoreFile(context).check(file)
    try check(checked, against: candidate, of: document)
    let reasonable = max(Self.leastCostlyByteCount, Self.greatestRatio * checked.byteCount)
    guard whateverItCosts || checked.header.storeByteCount <= reasonable else { return nil }
    try WholeStoreFile(context).expand(
      checked, at: file, to: database, like: siblings.store)
    try FileManager.default.removeItem(atPath: file)
    let examination = try WholeStoreExamination(
      database, header: checked.header, checkCancellation: context.checkCancellation)
    guard examination.isSound else { throw UnsoundWholeStore(faults: examination.faults) }
    return checked
  }

  private func check(
    _ checked: WholeStoreFile.Checked, against candidate: Candidate, of document: GenerationFile
  ) throws {
    let header = checked.header
    guard candidate.name.hash.matches(checked.hash) else {
      throw CodecError(.badChecksum, "hash in the name of the whole store")
    }
    guard header.root == document.root, header.document == document.document,
      header.generation == document.generation, header.client == candidate.client,
      header.number == candidate.name.number
    else { throw CodecError(.wrongType, "whole store of another document, client or number") }
  }
}

/// The error of a whole store whose file is intact, and whose database is
/// wrong.
struct UnsoundWholeStore: Error {
  /// The faults; at least one of them is grave.
  var faults: [WholeStoreExamination.Fault]
}

/// The whole stores that were skipped, and why.
struct WholeStoreFailures {
  /// The most whole stores whose faults the error lists.
  private static let greatestCount = 8

  private var failures: [(path: RelativePath, error: any Error)] = []
  private var paths: Set<RelativePath> = []
  /// The paths of whole stores whose files are intact and that will never be
  /// usable.
  private(set) var forEver: [String] = []
  /// The most costly whole stores that are tried, if there were more; `nil` if
  /// all were tried.
  var limit: Int?

  var isEmpty: Bool { failures.isEmpty }

  func contains(_ path: RelativePath) -> Bool { paths.contains(path) }

  mutating func add(_ path: RelativePath, _ error: any Error) {
    failures.append((path, error))
    paths.insert(path)
    if Self.isForEver(error) { forEver.append(path.description) }
  }

  /// The error if no whole store is left.
  func error(_ layout: DirectoryLayout.Generation, _ files: SharedFiles) -> SyncError {
    let wait: Remedy = "Wait until the shared directory has arrived completely"
    let upload: Remedy = "run \(elsewhere: .upload) on a device that has the document"
    guard let first = failures.first else {
      return files.context.error(
        .wholeStoreMissing, path: files.userPath(layout.wholeStores),
        "The copy of the database is not in the shared directory yet. The first upload may still be running.",
        remedy: "\(wait), or \(upload). If the set-up of the document was given up, remove it with "
          + "\(.deleteDocument).")
    }
    let reasons = failures.prefix(Self.greatestCount).map { Self.reason($0.error) }
    let others = failures.count - reasons.count
    let isOne = failures.count == 1
    let newer = failures.filter { Self.needsNewerReader($0.error) }.count
    let mayArrive = failures.contains { Self.mayArrive($0.error) }
    let update: Remedy = "Update DocumentSync on this device"
    var remedies = newer > 0 ? [update] : []
    if mayArrive { remedies.append(wait) }
    if newer < failures.count { remedies.append(upload) }
    let remedy = remedies.reduce("" as Remedy) { $0.isEmpty ? $1 : "\($0), or \($1)" }
    var message = "The copy of the database in the directory cannot be used: \(reasons[0].sentence)"
    if !isOne {
      message = "None of the copies of the database in the directory can be used: "
      message += zip(failures, reasons).map { "\(Self.name($0.path)): \($1.sentence)" }
        .joined(separator: " ")
      if others > 0 { message += " Nor can \(others) more." }
      if let limit { message += " There are more; at most \(limit) are tried." }
    }
    return files.context.error(
      newer == failures.count ? .newerVersionNeeded : .wholeStoreMissing,
      path: files.userPath(isOne ? first.path : layout.wholeStores), message,
      remedy: "\(remedy.capitalized), then try again.",
      detail: zip(failures, reasons).map { "\($0.path): \($1.detail)" }.joined(separator: "; "))
  }

  /// Returns the path of a whole store below the folder of all whole stores:
  /// its client and its number.
  private static func name(_ path: RelativePath) -> String {
    path.components.suffix(2).joined(separator: "/")
  }

  private static func reason(_ error: any Error) -> (sentence: String, detail: String) {
    switch error {
    case let error as UnsoundWholeStore:
      let grave = error.faults.filter(\.isGrave)
      return (
        grave.first?.message ?? "The whole store is damaged.",
        grave.map { [$0.message, $0.detail].compactMap(\.self).joined(separator: " ") }
          .joined(separator: " ")
      )
    case let error as CodecError: return (error.sentence, "\(error)")
    case let error as DirectoryError where error.code == .notFound:
      return ("The file was listed, and is not there.", "\(error)")
    case let error as DirectoryError: return ("The file cannot be read.", "\(error)")
    case let error as SyncError: return (error.message, "\(error)")
    default: return ("The file cannot be used.", "\(error)")
    }
  }

  /// Whether a file is intact, by the hash in its name, and no device can ever
  /// use it.
  private static func isForEver(_ error: any Error) -> Bool {
    switch error {
    case is UnsoundWholeStore: !needsNewerReader(error)
    case let error as SyncError: error.code == .malformedFile
    case let error as CodecError: error.code == .wrongType
    default: false
    }
  }

  private static func needsNewerReader(_ error: any Error) -> Bool {
    switch error {
    case let error as UnsoundWholeStore: error.faults.contains { $0.kind == .newerVersion }
    case let error as CodecError: error.needsNewerReader
    default: false
    }
  }

  private static func mayArrive(_ error: any Error) -> Bool {
    error is DirectoryError || (error as? CodecError)?.code == .truncated
  }
}
