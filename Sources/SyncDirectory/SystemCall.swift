#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A system call that failed. Its caller decides what the failure means.
struct SystemFailure: Error {
  var number: Int32
  var call: String

  /// The number and the system's text for it.
  var systemError: DirectoryError.SystemError {
    DirectoryError.SystemError(number: number, text: String(cString: strerror(number)))
  }

  /// The tests' view of the system calls of a task.
  struct Observer: Sendable {
    /// Receives the name of each call before it is made.
    let onCall: @Sendable (String) -> Void
  }

  /// The observer of the calls of a task. It is a structure: with a closure as its value, the optimizer
  /// of Swift 6 passes a wrong type to the runtime, which then crashes.
  @TaskLocal static var observer: Observer?

  /// Makes a system call and repeats it while a signal interrupts it. Throws if the call returns a
  /// negative value, which means an error.
  @discardableResult
  static func check<Result: SignedInteger>(
    _ call: String, _ body: () -> Result
  ) throws -> Result {
    while true {
      observer?.onCall(call)
      let result = body()
      if result >= 0 { return result }
      let number = errno
      if number != EINTR { throw SystemFailure(number: number, call: call) }
    }
  }
}

/// An open descriptor, which closes when the object is released.
final class OpenFile {
  let descriptor: Int32
  private var isOpen = true

  private init(descriptor: Int32) { self.descriptor = descriptor }

  deinit {
    // Errors do not matter here: code that relies on written bytes has called `flush()` and
    // `close()`.
    if isOpen { _ = systemClose(descriptor) }
  }

  /// Opens a file with `open(2)`, closed on exec.
  convenience init(path: String, flags: Int32, mode: mode_t = 0o666) throws {
    self.init(
      descriptor: try SystemFailure.check("open") { open(path, flags | O_CLOEXEC, mode) })
  }

  /// Opens a file with `openat(2)`, closed on exec. Follows no symbolic link.
  convenience init(
    in folder: OpenFile, name: String, flags: Int32, mode: mode_t = 0o666
  ) throws {
    self.init(
      descriptor: try SystemFailure.check("openat") {
        openat(folder.descriptor, name, flags | O_CLOEXEC | O_NOFOLLOW, mode)
      })
  }

  /// Closes the descriptor. Throws if that fails: some network file systems report a failed write
  /// only here.
  func close() throws {
    guard isOpen else { return }
    isOpen = false
    // Do not repeat an interrupted close: the descriptor is closed nevertheless.
    if systemClose(descriptor) < 0, errno != EINTR {
      throw SystemFailure(number: errno, call: "close")
    }
  }

  /// Returns the kind and the size of the file.
  func status() throws -> (isRegular: Bool, size: Int) {
    let status = try systemStatus()
    return (status.st_mode & S_IFMT == S_IFREG, Int(status.st_size))
  }

  /// Returns what the system knows about the file or folder.
  func systemStatus() throws -> stat {
    var status = stat()
    try SystemFailure.check("fstat") { fstat(descriptor, &status) }
    return status
  }

  /// Reads bytes from `offset` on into `buffer`. Returns their number, which is less than the
  /// buffer's only at the end of the file.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
    var done = 0
    while done < buffer.count, let base = buffer.baseAddress {
      let count = try SystemFailure.check("read") {
        pread(descriptor, base + done, buffer.count - done, off_t(offset + done))
      }
      if count == 0 { break }
      done += count
    }
    return done
  }

  /// Writes all of `bytes` at the current position.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    var done = 0
    while done < bytes.count, let base = bytes.baseAddress {
      let count = try SystemFailure.check("write") {
        systemWrite(descriptor, base + done, bytes.count - done)
      }
      guard count > 0 else { throw SystemFailure(number: EIO, call: "write") }
      done += count
    }
  }

  /// Writes the file's bytes to the medium, as far as the system can.
  func flush() throws {
    #if canImport(Darwin)
      // On Darwin fsync leaves the bytes in the drive's cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
    #endif
    try SystemFailure.check("fsync") { fsync(descriptor) }
  }

  /// Flushes a folder's names, or again a file whose bytes are flushed but whose entry in its
  /// folder may not be. Ignores a file system that cannot do so: several network file systems
  /// refuse, and none of them loses names for lack of the call.
  func flushWherePossible() throws {
    do {
      try flush()
    } catch let failure as SystemFailure
      where [EINVAL, ENOTSUP, EOPNOTSUPP, ENOSYS, EBADF, EISDIR].contains(failure.number)
    {
      return
    }
  }
}

private func systemClose(_ descriptor: Int32) -> Int32 { close(descriptor) }

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}
