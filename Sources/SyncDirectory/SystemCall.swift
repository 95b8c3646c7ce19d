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

  /// Makes a call that gives a negative value for an error, and repeats it as
  /// long as a signal interrupts it.
  @discardableResult
  static func check<Result: SignedInteger>(
    _ call: String, _ body: () -> Result
  ) throws -> Result {
    while true {
      let result = body()
      if result >= 0 { return result }
      let number = errno
      if number != EINTR { throw SystemFailure(number: number, call: call) }
    }
  }
}

/// An open descriptor, closed when it is released.
final class OpenFile {
  let descriptor: Int32
  private var isOpen = true

  private init(descriptor: Int32) { self.descriptor = descriptor }

  deinit {
    // Before any code relies on written bytes, they have been flushed and the file
    // has been closed by `close()`.
    if isOpen { _ = systemClose(descriptor) }
  }

  /// `open(2)`, closed on exec.
  convenience init(path: String, flags: Int32, mode: mode_t = 0o666) throws {
    self.init(
      descriptor: try SystemFailure.check("open") { open(path, flags | O_CLOEXEC, mode) })
  }

  /// `openat(2)`, closed on exec; no symbolic link is followed.
  convenience init(
    in folder: OpenFile, name: String, flags: Int32, mode: mode_t = 0o666
  ) throws {
    self.init(
      descriptor: try SystemFailure.check("openat") {
        openat(folder.descriptor, name, flags | O_CLOEXEC | O_NOFOLLOW, mode)
      })
  }

  /// Closes the descriptor; throws if that fails: some network file systems report
  /// a failed write only here.
  func close() throws {
    guard isOpen else { return }
    isOpen = false
    // An interrupted close is not repeated: the descriptor is closed all the same.
    if systemClose(descriptor) < 0, errno != EINTR {
      throw SystemFailure(number: errno, call: "close")
    }
  }

  /// The kind and the size of the file.
  func status() throws -> (isRegular: Bool, size: Int) {
    var status = stat()
    try SystemFailure.check("fstat") { fstat(descriptor, &status) }
    return (status.st_mode & S_IFMT == S_IFREG, Int(status.st_size))
  }

  /// Fills `buffer` with the bytes from `offset` on; fills less than all
  /// of it only at the end of the file.
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

  /// Writes the bytes to the medium, as far as the system can.
  func flush() throws {
    #if canImport(Darwin)
      // On Darwin fsync leaves the bytes in the drive's cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
    #endif
    try SystemFailure.check("fsync") { fsync(descriptor) }
  }

  /// Writes a folder's names, or a folder's entry of a file whose bytes were
  /// flushed before, to the medium if the file system can. Several network
  /// file systems refuse, and none of these loses names that others would keep.
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
