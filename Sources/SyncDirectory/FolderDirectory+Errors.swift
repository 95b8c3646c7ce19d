#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The root could not be opened.
struct RootFailure: Error {
  var failure: SystemFailure
}

extension FolderDirectory {
  /// Runs `body` and converts its failure to a ``DirectoryError``.
  func perform<Result>(
    _ operation: DirectoryError.Operation, _ path: RelativePath, writes: Bool? = nil,
    _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let root as RootFailure {
      throw error(
        Self.code(ofRoot: root.failure.number), operation, .root, underlying: root.failure)
    } catch let failure as SystemFailure {
      let writes = writes ?? ![.check, .list, .read, .download].contains(operation)
      let code = Self.code(of: failure, writes: writes)
      var error = error(code, operation, path, underlying: failure)
      if code == .notWritable, let remedy = groupRemedy(path) { error.remedy = remedy }
      throw error
    }
  }

  /// Returns an error about a path of this directory.
  func error(
    _ code: DirectoryError.Code, _ operation: DirectoryError.Operation, _ path: RelativePath,
    _ detail: String = "", underlying: SystemFailure? = nil
  ) -> DirectoryError {
    var error = DirectoryError(
      code, operation, path: path == .root ? root : "\(root)/\(path)",
      detail: [detail, underlying.map { "\($0.call) failed" } ?? ""]
        .filter { !$0.isEmpty }.joined(separator: "; "),
      underlying: underlying?.systemError)
    if let underlying, [EPERM, EACCES].contains(underlying.number),
      ["rename", "unlink", "openat", "read"].contains(underlying.call)
    {
      // On SMB and SSHFS these numbers also mean that a program has the file open.
      error.isRetryable = true
    }
    return error
  }

  /// Returns the code for an error while opening the root.
  static func code(ofRoot number: Int32) -> DirectoryError.Code {
    switch number {
    case ENOTDIR: .notADirectory
    case EACCES, EPERM: .notReadable
    case EMFILE, ENFILE, ENOMEM, ENAMETOOLONG: .io
    default: .away
    }
  }

  /// Returns the code for an error below the root.
  static func code(of failure: SystemFailure, writes: Bool) -> DirectoryError.Code {
    switch failure.number {
    case ENOENT: .notFound
    case ENOTDIR, ELOOP, EMLINK: .notADirectory
    case EISDIR: .notRegularFile
    case EACCES, EPERM: writes ? .notWritable : .notReadable
    case EROFS: .notWritable
    case ENOSPC, EDQUOT: .noSpace
    case ENOTEMPTY: .notEmpty
    case EEXIST: failure.call == "rmdir" ? .notEmpty : .exists
    case ESTALE, EFAULT, EINTR, EAGAIN, EBUSY, ETXTBSY: .transient
    case ENOTCONN, ESHUTDOWN, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH, ETIMEDOUT,
      ECONNRESET, ECONNABORTED, ECONNREFUSED, ENODEV, ENXIO:
      .away
    default: .io
    }
  }
}
