import SyncDirectory
import SyncModel

/// Reads the files of a shared directory one after the other, and notes the
/// faults of each by itself.
final class VerifiedFiles {
  let directory: any SharedDirectory
  let context: OperationContext
  private(set) var report = VerifyReport()

  init(_ directory: any SharedDirectory, context: OperationContext) {
    self.directory = directory
    self.context = context
  }

  func note(_ finding: VerifyReport.Finding) { report.findings.append(finding) }

  func note(
    _ kind: VerifyReport.Finding.Kind, _ path: RelativePath, _ message: String,
    detail: String? = nil
  ) {
    note(VerifyReport.Finding(kind, path: path.description, message, detail: detail))
  }

  /// Notes that something was not checked.
  func leaveOut(_ sentence: String) { report.leftOut.append(sentence) }

  // MARK: - Reading

  /// An intact file.
  struct Whole<Content> {
    var content: Content
    var hash: ContentHash
  }

  /// Reads and decodes a file. Returns `nil` if the file is faulty, with a
  /// finding, or if it has gone since it was listed, without one.
  ///
  /// - Parameters:
  ///   - fragment: The hash in its name, if its name has one.
  ///   - malformed: The kind of finding if the bytes are as they were written,
  ///     and the file's format does not allow the content.
  func read<Content>(
    _ path: RelativePath, _ fragment: HashFragment? = nil, limits: CodecLimits,
    malformed: VerifyReport.Finding.Kind = .malformed, _ decode: ([UInt8]) throws -> Content
  ) throws -> Whole<Content>? {
    defer { context.report { $0.completedCount += 1 } }
    guard let bytes = try bytes(path, limit: limits.fileBytes) else { return nil }
    let hash = ContentHash(of: bytes)
    do {
      let content = try decode(bytes)
      if let fragment, !fragment.matches(hash) {
        note(
          .misnamed, path, "The file is intact, and its content is not the one in its name.",
          detail: "its hash begins with \(hash.nameFragment)")
        return nil
      }
      return Whole(content: content, hash: hash)
    } catch let error as CodecError {
      var found = finding(error, path, isAsWritten: isAsWritten(bytes, hash, fragment, limits))
      if found.kind == .malformed, malformed != .malformed {
        found = VerifyReport.Finding(
          malformed, path: found.path, found.message, detail: found.detail)
      }
      note(found)
      return nil
    }
  }

  /// Reads a file whose body is JSON.
  func json<Value: Decodable>(
    _ path: RelativePath, _ fragment: HashFragment? = nil, as type: Value.Type,
    _ fileType: Envelope.FileType
  ) throws -> Whole<Value>? {
    try read(path, fragment, limits: .small) {
      try Envelope.decodeJSON(type, from: $0, type: fileType)
    }
  }

  /// Returns the finding for a file that cannot be decoded.
  ///
  /// - Parameter isAsWritten: Whether the bytes are those that the author has
  ///   written.
  func finding(
    _ error: CodecError, _ path: RelativePath, isAsWritten: Bool
  ) -> VerifyReport.Finding {
    let (kind, message): (VerifyReport.Finding.Kind, String) =
      switch error.code {
      case .unsupportedVersion, .unknownCriticalField:
        (.newerVersion, "The file was written by a newer version of DocumentSync.")
      case .badMagic: (.wrongType, "This is not a file of DocumentSync.")
      case .wrongType:
        (.wrongType, "The file has another type than its place suggests.")
      case .truncated where !isAsWritten: (.truncated, "The file ends too early.")
      case _ where isAsWritten:
        (.malformed, "The file is intact, and its content breaks the rules of its format.")
      default: (.damaged, "The file is damaged.")
      }
    return VerifyReport.Finding(
      kind, path: path.description, message,
      detail: error.what + (error.offset.map { " at byte \($0)" } ?? ""))
  }

  private func bytes(_ path: RelativePath, limit: Int) throws -> [UInt8]? {
    try context.checkCancellation()
    do {
      let bytes = try directory.read(path, limit: limit)
      report.fileCount += 1
      report.byteCount += bytes.count
      context.report { $0.completedBytes += bytes.count }
      return bytes
    } catch let error as DirectoryError {
      try note(error, path)
      return nil
    }
  }

  /// Notes that a file cannot be read, unless it has gone since it was listed.
  func note(_ error: DirectoryError, _ path: RelativePath) throws {
    switch error.code {
    case .away, .noAnswer, .localFile: throw error
    case .tooLarge:
      note(.malformed, path, "The file is larger than permitted.", detail: error.detail)
    case .notRegularFile, .notADirectory:
      note(
        .wrongKind, path, "A link, a folder or a device is in the place of a file of DocumentSync.",
        detail: "\(error)")
    case .notFound where try !isListed(path): break
    default: note(.unreadable, path, "The file cannot be read.", detail: "\(error)")
    }
  }

  /// Counts a file that the caller has read.
  func count(bytes: Int) {
    report.fileCount += 1
    report.byteCount += bytes
    context.report { $0.completedBytes += bytes }
  }

  private func isListed(_ path: RelativePath) throws -> Bool {
    guard let parent = path.parent else { return false }
    do {
      return try directory.list(parent).contains { $0.name == path.name }
    } catch let error as DirectoryError where error.code == .notFound {
      return false
    }
  }

  /// Whether the bytes are those that were written, by the hash in the name,
  /// or, if the name has none, by the hash at their end.
  private func isAsWritten(
    _ bytes: [UInt8], _ hash: ContentHash, _ fragment: HashFragment?, _ limits: CodecLimits
  ) -> Bool {
    if let fragment { return fragment.matches(hash) }
    do {
      _ = try Envelope.decode(bytes, expecting: nil, limits: limits)
      return true
    } catch {
      // The caller notes the finding.
      return false
    }
  }
}
