import Dispatch
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Notices changes of the files in a folder.
package enum FolderWatch {
  /// What is watched of a folder.
  package struct Interest: Sendable {
    /// Whether the folders below it are watched as well.
    package var isRecursive: Bool
    /// Whether a file counts whenever it is written to, and not only when it is complete.
    package var includesWriting: Bool
    /// Whether the file or folder of that name counts.
    package var includes: @Sendable (_ name: String) -> Bool

    /// Creates an interest from its parts.
    package init(
      isRecursive: Bool, includesWriting: Bool, includes: @escaping @Sendable (String) -> Bool
    ) {
      self.isRecursive = isRecursive
      self.includesWriting = includesWriting
      self.includes = includes
    }
  }

  /// Returns a stream with an element after changes; those that come before it is taken coalesce. The stream ends
  /// if the folder goes, or if the system can no longer report changes.
  ///
  /// Returns `nil` if the system does not report changes there: on a network mount or FUSE, which do not
  /// tell what others change; if the system's limit of watches is reached; if there is no such folder; on
  /// systems without inotify.
  package static func changes(in folder: String, _ interest: Interest) -> AsyncStream<Void>? {
    #if os(Linux)
      guard !FileSystemKind.isRemote(folder) else { return nil }
      let (stream, continuation) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))
      guard let watch = InotifyWatch(folder, interest, continuation) else { return nil }
      continuation.onTermination = { _ in watch.end() }
      return stream
    #else
      return nil
    #endif
  }

  /// Returns the stream of changes of one database: its file, and the files that SQLite keeps beside it.
  package static func changes(ofDatabaseAt path: String) -> AsyncStream<Void>? {
    let url = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    let name = url.lastPathComponent
    let names: Set = [name, name + "-wal", name + "-journal"]
    return changes(
      in: url.deletingLastPathComponent().path,
      Interest(isRecursive: false, includesWriting: true) { names.contains($0) })
  }
}

/// The kinds of file systems that matter to those who watch a folder on Linux.
enum FileSystemKind {
  /// Whether a folder is on a network mount or FUSE: the system does not report what other devices change
  /// there. A folder of which that is not known counts as such.
  static func isRemote(_ folder: String) -> Bool {
    guard let content = FileManager.default.contents(atPath: "/proc/self/mountinfo") else {
      return true
    }
    let mounts = String(decoding: content, as: UTF8.self)
    let url = URL(fileURLWithPath: folder).standardizedFileURL
    // Resolving links asks the mount, which may hang.
    if type(of: url.path, mounts: mounts).map(isRemoteType) ?? true { return true }
    return type(of: url.resolvingSymlinksInPath().path, mounts: mounts).map(isRemoteType) ?? true
  }

  /// Returns the type of the file system that a path is on; `nil` if no mount has it.
  ///
  /// - Parameter mounts: The content of `/proc/self/mountinfo`; see proc_pid_mountinfo(5).
  static func type(of path: String, mounts: String) -> String? {
    var best: (length: Int, type: String)?
    for line in mounts.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count > 4, let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count else {
        continue
      }
      let point = unescaped(fields[4])
      let isAbove = path == point || path.hasPrefix(point.hasSuffix("/") ? point : point + "/")
      // Of two at one place, the later one hides the earlier.
      guard isAbove, point.utf8.count >= best?.length ?? 0 else { continue }
      best = (point.utf8.count, String(fields[dash + 1]))
    }
    return best?.type
  }

  /// Replaces the octal escapes of spaces, tabs, newlines and backslashes.
  private static func unescaped(_ text: Substring) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
      .reduce(String(text)) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
  }

  static func isRemoteType(_ type: String) -> Bool {
    // A disk that a program in user space reads (fuseblk) is a disk of this device.
    type == "fuse" || type.hasPrefix("fuse.") || type.hasPrefix("nfs") || remoteTypes.contains(type)
  }

  private static let remoteTypes: Set = [
    "autofs", "cifs", "smb3", "smbfs", "9p", "vboxsf", "prl_fs", "afs", "ceph", "coda", "ncpfs",
    "virtiofs",
    "davfs", "gfs2", "ocfs2", "lustre", "glusterfs",
  ]
}

#if os(Linux)
  /// Calls `read(2)`: a type with a function of that name hides it.
  private func systemRead(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    read(descriptor, buffer.baseAddress, buffer.count)
  }

  /// A watch on a folder by inotify(7).
  private final class InotifyWatch: @unchecked Sendable {
    private let root: String
    private let interest: FolderWatch.Interest
    private let continuation: AsyncStream<Void>.Continuation
    private let descriptor: Int32
    private let queue = DispatchQueue(label: "DocumentSync: watching a folder")
    private let source: any DispatchSourceRead
    /// The watched folders, by the numbers of their watches; used on `queue` alone.
    private var folders: [Int32: String] = [:]

    /// The most folders of one watch: the system's limit is shared by all programs of the user.
    private static let greatestCount = 10_000
    /// The most folders one below the other.
    private static let greatestDepth = 16

    /// Returns `nil` if the folder cannot be watched.
    init?(
      _ folder: String, _ interest: FolderWatch.Interest,
      _ continuation: AsyncStream<Void>.Continuation
    ) {
      root = folder
      self.interest = interest
      self.continuation = continuation
      descriptor = inotify_init1(O_NONBLOCK | O_CLOEXEC)
      guard descriptor >= 0 else { return nil }
      source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
      let isWatched = add(folder)
      source.setEventHandler { [weak self] in self?.read() }
      source.setCancelHandler { [descriptor] in _ = close(descriptor) }
      source.activate()
      guard isWatched else {
        source.cancel()
        return nil
      }
    }

    func end() { source.cancel() }

    /// Watches a folder and, if wanted, those below it. Returns whether that was possible; folders that
    /// have gone meanwhile do not count.
    private func add(_ folder: String) -> Bool {
      var mask =
        IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_DELETE_SELF
        | IN_MOVE_SELF | IN_ONLYDIR
      if interest.includesWriting { mask |= IN_MODIFY }
      // A link in the directory leads anywhere.
      if folder != root { mask |= IN_DONT_FOLLOW }
      let depth = folder.dropFirst(root.count).utf8.count { $0 == UInt8(ascii: "/") }
      guard folders.count < Self.greatestCount, depth <= Self.greatestDepth else { return false }
      let number = inotify_add_watch(descriptor, folder, UInt32(mask))
      guard number >= 0 else {
        let isGone = [ENOENT, ENOTDIR, EACCES, ELOOP].contains(errno)
        return isGone && folder != root
      }
      folders[number] = folder
      guard interest.isRecursive else { return true }
      return subfolders(of: folder).allSatisfy(add)
    }

    private func subfolders(of folder: String) -> [String] {
      guard let stream = opendir(folder) else { return [] }
      defer { closedir(stream) }
      var found: [String] = []
      while let entry = readdir(stream) {
        // Where the kind is not known, watching a file fails, which does no harm.
        guard [Int(DT_DIR), Int(DT_UNKNOWN)].contains(Int(entry.pointee.d_type)) else { continue }
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != "..", interest.includes(name) { found.append(folder + "/" + name) }
      }
      return found
    }

    /// Reads the events that have come.
    private func read() {
      var buffer = [UInt8](repeating: 0, count: 64 << 10)
      while true {
        let count = buffer.withUnsafeMutableBytes { systemRead(descriptor, into: $0) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else {
          if count < 0, errno != EAGAIN { continuation.finish() }
          return
        }
        handle(buffer[..<count])
      }
    }

    private func handle(_ bytes: ArraySlice<UInt8>) {
      var rest = bytes
      var hasChanged = false
      while rest.count >= 16 {
        let words = (0..<4).map { word in
          (0..<4).reduce(UInt32(0)) {
            $0 | UInt32(rest[rest.startIndex + 4 * word + $1]) << (8 * $1)
          }
        }
        let number = Int32(bitPattern: words[0])
        let mask = Int32(bitPattern: words[1])
        let name = String(
          decoding: rest.dropFirst(16).prefix(Int(words[3])).prefix { $0 != 0 }, as: UTF8.self)
        rest = rest.dropFirst(16 + Int(words[3]))
        guard handle(number, mask, name, &hasChanged) else {
          continuation.finish()
          return
        }
      }
      if hasChanged { continuation.yield() }
    }

    /// Returns false if the watch ends.
    private func handle(
      _ number: Int32, _ mask: Int32, _ name: String, _ hasChanged: inout Bool
    ) -> Bool {
      if mask & IN_Q_OVERFLOW != 0 {
        // Folders may have come meanwhile.
        hasChanged = true
        return add(root)
      }
      guard let folder = folders[number] else { return true }
      if mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED) != 0 {
        folders[number] = nil
        guard folder != root else { return false }
        guard mask & IN_MOVE_SELF != 0 else { return true }
        // It may have another place in the tree, at which the number stays the same.
        inotify_rm_watch(descriptor, number)
        hasChanged = true
        return add(folder)
      }
      guard interest.includes(name) else { return true }
      hasChanged = true
      let isNew = mask & (IN_CREATE | IN_MOVED_TO) != 0
      guard interest.isRecursive, isNew, mask & Int32(bitPattern: UInt32(IN_ISDIR)) != 0 else {
        return true
      }
      return add(folder + "/" + name)
    }
  }
#endif
