#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An open folder of files that only this user may read.
final class KeyFolder {
  /// A system call that failed.
  struct Failure: Error {
    var call: String
    var number: Int32
    var path: String

    /// The system's words for it.
    var text: String { String(cString: strerror(number)) }
  }

  let path: String
  private let descriptor: Int32

  private static let greatestFile = 64 << 20
  private static let otherUsers: mode_t = 0o077

  private init(path: String, descriptor: Int32) throws {
    self.path = path
    self.descriptor = descriptor
    try Self.check(descriptor, path: path, isFolder: true)
  }

  deinit { _ = systemClose(descriptor) }

  /// Opens a folder; returns `nil` if there is none.
  convenience init?(opening path: String) throws {
    let descriptor = Self.retrying {
      open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    }
    if descriptor < 0 {
      let number = errno
      guard number == ENOENT else { throw Self.failure("open", number, path) }
      return nil
    }
    try self.init(path: path, descriptor: descriptor)
  }

  /// Opens a folder, and makes it and the folders above it if need be.
  convenience init(creating path: String) throws {
    var made = path.hasPrefix("/") ? "" : "."
    for part in path.split(separator: "/") {
      let parent = made.isEmpty ? "/" : made
      made += "/\(part)"
      if mkdir(made, 0o700) == 0 {
        try Self.flushFolder(parent)
      } else {
        let number = errno
        // What exists is checked when it is opened. Some systems report other errors for folders
        // that exist and may not be written.
        guard number == EEXIST || access(made, F_OK) == 0 else {
          throw Self.failure("mkdir", number, made)
        }
      }
    }
    let descriptor = Self.retrying {
      open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    }
    guard descriptor >= 0 else { throw Self.failure("open", errno, path) }
    try self.init(path: path, descriptor: descriptor)
  }

  // MARK: Files

  /// Returns the bytes of a file; `nil` if there is none.
  func read(_ name: String) throws -> [UInt8]? {
    let path = "\(path)/\(name)"
    let file = Self.retrying {
      openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    }
    if file < 0 {
      let number = errno
      guard number == ENOENT else { throw Self.failure("open", number, path) }
      return nil
    }
    defer { _ = systemClose(file) }
    let size = try Self.check(file, path: path, isFolder: false)
    guard size <= Self.greatestFile else { throw Failure(call: "read", number: EFBIG, path: path) }
    var bytes = [UInt8](repeating: 0, count: size)
    var done = 0
    while done < size {
      let count = bytes.withUnsafeMutableBytes { buffer in
        Self.retrying { systemRead(file, buffer, from: done) }
      }
      guard count >= 0 else { throw Self.failure("read", errno, path) }
      guard count > 0 else { break }
      done += count
    }
    return Array(bytes.prefix(done))
  }

  /// Replaces a file, or creates it. The caller has locked it.
  ///
  /// At every moment the file has either the old bytes or the new ones, and when the function
  /// returns, the new ones are on the medium.
  func replace(_ name: String, with bytes: [UInt8]) throws {
    let unfinished = name + ".new"
    let path = "\(path)/\(unfinished)"
    // A process that was ended may have left one.
    _ = unlinkat(descriptor, unfinished, 0)
    let file = Self.retrying {
      openat(descriptor, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    }
    guard file >= 0 else { throw Self.failure("open", errno, path) }
    do {
      try Self.write(bytes, to: file, path: path)
      guard renameat(descriptor, unfinished, descriptor, name) == 0 else {
        throw Self.failure("rename", errno, path)
      }
    } catch {
      _ = unlinkat(descriptor, unfinished, 0)
      throw error
    }
    try flush()
  }

  /// Removes a file, if there is one. The caller has locked it.
  func remove(_ name: String) throws {
    guard unlinkat(descriptor, name, 0) == 0 || errno == ENOENT else {
      throw Self.failure("unlink", errno, "\(path)/\(name)")
    }
    try flush()
  }

  private static func write(_ bytes: [UInt8], to file: Int32, path: String) throws {
    do {
      guard fchmod(file, 0o600) == 0 else { throw failure("chmod", errno, path) }
      var done = 0
      while done < bytes.count {
        let count = bytes.withUnsafeBytes { buffer in
          retrying { systemWrite(file, buffer, from: done) }
        }
        guard count > 0 else { throw failure("write", count < 0 ? errno : EIO, path) }
        done += count
      }
      guard flush(file) == 0 else { throw failure("fsync", errno, path) }
    } catch {
      _ = systemClose(file)
      throw error
    }
    guard systemClose(file) == 0 else { throw failure("close", errno, path) }
  }

  private func flush() throws {
    guard Self.flush(descriptor) == 0 else { throw Self.failure("fsync", errno, path) }
  }

  private static func flush(_ descriptor: Int32) -> Int32 {
    #if canImport(Darwin)
      // On Darwin fsync leaves the bytes in the drive's cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return 0 }
    #endif
    return retrying { fsync(descriptor) }
  }

  private static func flushFolder(_ path: String) throws {
    let folder = retrying { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard folder >= 0 else { throw failure("open", errno, path) }
    defer { _ = systemClose(folder) }
    guard flush(folder) == 0 else { throw failure("fsync", errno, path) }
  }

  // MARK: Locks

  /// A lock that other processes, and other threads, wait for.
  final class Lock {
    private let descriptor: Int32
    fileprivate init(descriptor: Int32) { self.descriptor = descriptor }
    /// Ends the lock.
    func release() { _ = systemClose(descriptor) }
  }

  /// Locks a file, and waits until others have released it.
  func lock(_ name: String) throws -> Lock {
    let path = "\(path)/\(name)"
    let file = Self.retrying {
      openat(descriptor, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
    }
    guard file >= 0 else { throw Self.failure("open", errno, path) }
    let lock = Lock(descriptor: file)
    do {
      try Self.check(file, path: path, isFolder: false)
      guard Self.retrying({ flock(file, LOCK_EX) }) == 0 else {
        throw Self.failure("flock", errno, path)
      }
    } catch {
      lock.release()
      throw error
    }
    return lock
  }

  // MARK: Checks

  /// Refuses what other users could read or have made, and returns the size.
  @discardableResult
  private static func check(_ descriptor: Int32, path: String, isFolder: Bool) throws -> Int {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure("fstat", errno, path) }
    guard isFolder || status.st_mode & S_IFMT == S_IFREG else {
      throw Failure(call: "open", number: EINVAL, path: path)
    }
    try check(
      owner: status.st_uid, mode: status.st_mode, user: geteuid(), path: path, isFolder: isFolder)
    return Int(status.st_size)
  }

  /// Refuses a file or a folder by its owner and its mode.
  static func check(
    owner: uid_t, mode: mode_t, user: uid_t, path: String, isFolder: Bool
  ) throws {
    let thing = isFolder ? "folder with this device's keys" : "file with this device's keys"
    guard owner == user else {
      throw SecurityError(
        .keysExposed, "The \(thing) belongs to another user.",
        remedy: "Work as the user who owns it (number \(owner)), or move it away and join again.",
        path: path, detail: "this process runs as user number \(user)")
    }
    guard mode & otherUsers == 0 else {
      let found = String(mode & 0o777, radix: 8)
      let right = isFolder ? "700" : "600"
      throw SecurityError(
        .keysExposed, "Other users may read the \(thing).",
        remedy:
          "Run “chmod \(right)” on it. If others can have read it, remove this device and join again.",
        path: path, detail: "mode \(found), not \(right)")
    }
  }

  private static func failure(_ call: String, _ number: Int32, _ path: String) -> Failure {
    Failure(call: call, number: number, path: path)
  }

  /// Repeats a call while a signal interrupts it.
  private static func retrying<Result: SignedInteger>(_ call: () -> Result) -> Result {
    while true {
      let result = call()
      if result >= 0 || errno != EINTR { return result }
    }
  }
}

// Within the class, the names of the system's functions are those of its own.
private func systemClose(_ descriptor: Int32) -> Int32 { close(descriptor) }

private func systemRead(
  _ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, from start: Int
) -> Int {
  let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
  return read(descriptor, rest.baseAddress, rest.count)
}

private func systemWrite(
  _ descriptor: Int32, _ buffer: UnsafeRawBufferPointer, from start: Int
) -> Int {
  let rest = UnsafeRawBufferPointer(rebasing: buffer[start...])
  return write(descriptor, rest.baseAddress, rest.count)
}
