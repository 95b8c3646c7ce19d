import SyncDirectory
import SyncModel

/// A shared directory in memory.
///
/// Several views of one content simulate several devices: when one publishes a file, the others see
/// it at once. Each listing has a random order, from the view's seed, since no code may depend on
/// the order.
public final class MemoryDirectory: SharedDirectory {
  /// The kind and content of an entry.
  public enum Item: Hashable, Sendable {
    /// A regular file.
    case file([UInt8])
    /// A folder; its entries are separate items.
    case folder
    /// An entry of another kind, such as a symbolic link.
    case other
  }

  struct Content {
    var items: [RelativePath: Item] = [.root: .folder]
    var children: [RelativePath: Set<String>] = [.root: []]
    var isAway = false
    var isReadOnly = false
    var capacity = Int.max
    var size = 0
    /// Those who want to hear of changes, by numbers.
    var watchers: [UInt64: AsyncStream<Void>.Continuation] = [:]
    var nextWatcher: UInt64 = 0
  }

  private let storage: Locked<Content>
  private let random: Locked<SeededRandom>
  /// A name for messages.
  public let location: String

  /// Creates an empty directory. `seed` determines the order of listings.
  public convenience init(seed: UInt64 = 0, location: String = "memory") {
    self.init(storage: Locked(Content()), seed: seed, location: location)
  }

  private init(storage: Locked<Content>, seed: UInt64, location: String) {
    self.storage = storage
    self.random = Locked(SeededRandom(seed: seed))
    self.location = location
  }

  /// Returns another view of the same content.
  public func view(seed: UInt64 = 0) -> MemoryDirectory {
    MemoryDirectory(storage: storage, seed: seed, location: location)
  }

  /// Returns a stream with an element after each change by any view; changes coalesce.
  public func changes() -> AsyncStream<Void>? {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let number = storage.withLock { content in
      content.nextWatcher += 1
      content.watchers[content.nextWatcher] = continuation
      return content.nextWatcher
    }
    continuation.onTermination = { [storage] _ in
      storage.withLock { _ = $0.watchers.removeValue(forKey: number) }
    }
    return stream
  }

  /// Whether the root is away, for all views.
  public var isAway: Bool {
    get { storage.withLock { $0.isAway } }
    set { storage.withLock { $0.isAway = newValue } }
  }

  /// Whether writing is refused, for all views.
  public var isReadOnly: Bool {
    get { storage.withLock { $0.isReadOnly } }
    set { storage.withLock { $0.isReadOnly = newValue } }
  }

  /// The greatest total size of all files, in bytes, for all views.
  public var capacity: Int {
    get { storage.withLock { $0.capacity } }
    set { storage.withLock { $0.capacity = newValue } }
  }

  /// All entries of the directory by path, without the root.
  public var items: [RelativePath: Item] {
    storage.withLock { $0.items.filter { $0.key != .root } }
  }

  /// Puts an entry at a path as another program would, replacing an existing one: to simulate
  /// foreign files and damage.
  public func put(_ item: Item, at path: RelativePath) {
    storage.withLock { $0.put(item, at: path) }
  }

  /// Removes the entry at a path and everything below it, as another program would.
  public func take(_ path: RelativePath) {
    storage.withLock { $0.take(path) }
  }

  /// See `SharedDirectory`.
  public func check(for access: DirectoryAccess) throws {
    try perform(.check, .root, writes: access == .writing) { _ in }
  }

  /// See `SharedDirectory`.
  public func list(_ folder: RelativePath) throws -> [DirectoryEntry] {
    let entries = try perform(.list, folder) { content in
      try content.requireFolder(folder)
      return (content.children[folder] ?? []).sorted().map { name in
        DirectoryEntry(name: name, kind: content.items[folder / name]?.kind ?? .unknown)
      }
    }
    return random.withLock { entries.shuffled(using: &$0) }
  }

  /// See `SharedDirectory`.
  public func read(_ path: RelativePath, limit: Int) throws -> [UInt8] {
    try bytes(of: path, .read, limit: limit)
  }

  /// See `SharedDirectory`.
  public func byteCount(of path: RelativePath) throws -> Int {
    try bytes(of: path, .read, limit: .max).count
  }

  /// See `SharedDirectory`.
  public func download(
    _ path: RelativePath, to localFile: String, limit: Int, progress: TransferProgress
  ) throws {
    let bytes = try bytes(of: path, .download, limit: limit)
    let file = try LocalFile(creating: localFile)
    do {
      try progress(0, bytes.count)
      var done = 0
      while done < bytes.count {
        let piece = bytes[done..<min(done + (1 << 20), bytes.count)]
        try file.write(piece)
        done += piece.count
        try progress(done, bytes.count)
      }
      try file.finish()
    } catch {
      file.discard()
      throw error
    }
  }

  /// See `SharedDirectory`.
  public func publish(
    _ content: [UInt8], at path: RelativePath, by client: ClientIdentifier
  ) throws {
    try publish(content, .publish, path)
  }

  /// See `SharedDirectory`.
  public func upload(
    localFile: String, to path: RelativePath, by client: ClientIdentifier,
    progress: TransferProgress
  ) throws {
    let file = try LocalFile(opening: localFile)
    let size = try file.size()
    try progress(0, size)
    var bytes: [UInt8] = []
    while bytes.count < size {
      let piece = try file.read(min(1 << 20, size - bytes.count), at: bytes.count)
      guard !piece.isEmpty else {
        throw DirectoryError(
          .localFile, .upload, path: localFile, detail: "the file became shorter while it was read")
      }
      bytes += piece
      try progress(bytes.count, size)
    }
    try publish(bytes, .upload, path)
  }

  /// See `SharedDirectory`.
  public func remove(_ path: RelativePath) throws {
    guard path != .root else { throw DirectoryError(.invalidPath, .remove, path: location) }
    try perform(.remove, path, writes: true) { content in
      if case .folder = content.items[path], content.children[path]?.isEmpty == false {
        throw MemoryFailure(code: .notEmpty)
      }
      content.take(path)
    }
  }

  /// See `SharedDirectory`.
  public func removeLeftovers(of client: ClientIdentifier) throws {
    let folder = DirectoryLayout.temporary(of: client)
    try perform(.removeLeftovers, folder, writes: true) { content in
      for name in content.children[folder] ?? [] where content.items[folder / name] != .folder {
        content.take(folder / name)
      }
    }
  }

  private func bytes(
    of path: RelativePath, _ operation: DirectoryError.Operation, limit: Int
  ) throws -> [UInt8] {
    try perform(operation, path) { content in
      if let parent = path.parent { try content.requireFolder(parent) }
      switch content.items[path] {
      case nil: throw MemoryFailure(code: .notFound)
      case .folder, .other: throw MemoryFailure(code: .notRegularFile)
      case .file(let bytes) where bytes.count > limit: throw MemoryFailure(code: .tooLarge)
      case .file(let bytes): return bytes
      }
    }
  }

  private func publish(
    _ bytes: [UInt8], _ operation: DirectoryError.Operation, _ path: RelativePath
  ) throws {
    try perform(operation, path, writes: true) { content in
      guard path.isPublishable, let parent = path.parent else {
        throw MemoryFailure(code: .invalidPath)
      }
      if let item = content.items[path] {
        guard item == .file(bytes) else { throw MemoryFailure(code: .exists) }
        return
      }
      guard content.size + bytes.count <= content.capacity else {
        throw MemoryFailure(code: .noSpace)
      }
      try content.createFolder(parent)
      content.put(.file(bytes), at: path)
    }
  }

  private func perform<Result>(
    _ operation: DirectoryError.Operation, _ path: RelativePath, writes: Bool = false,
    _ body: (inout Content) throws -> Result
  ) throws -> Result {
    do {
      return try storage.withLock { content in
        if content.isAway { throw MemoryFailure(code: .away) }
        if writes, content.isReadOnly { throw MemoryFailure(code: .notWritable) }
        return try body(&content)
      }
    } catch let failure as MemoryFailure {
      throw DirectoryError(
        failure.code, operation, path: path == .root ? location : "\(location)/\(path)")
    }
  }
}

/// A failure that ``MemoryDirectory`` converts to the error of a call.
private struct MemoryFailure: Error {
  var code: DirectoryError.Code
}

extension MemoryDirectory.Item {
  fileprivate var kind: DirectoryEntry.Kind {
    switch self {
    case .file: .file
    case .folder: .folder
    case .other: .other
    }
  }

  fileprivate var size: Int {
    if case .file(let bytes) = self { bytes.count } else { 0 }
  }
}

extension MemoryDirectory.Content {
  fileprivate func requireFolder(_ path: RelativePath) throws {
    var folder = RelativePath.root
    for name in path.components {
      folder = folder / name
      switch items[folder] {
      case nil: throw MemoryFailure(code: .notFound)
      case .folder: continue
      case .file, .other: throw MemoryFailure(code: .notADirectory)
      }
    }
  }

  fileprivate mutating func createFolder(_ path: RelativePath) throws {
    var folder = RelativePath.root
    for name in path.components {
      folder = folder / name
      switch items[folder] {
      case nil: put(.folder, at: folder)
      case .folder: continue
      case .file, .other: throw MemoryFailure(code: .notADirectory)
      }
    }
  }

  fileprivate mutating func put(_ item: MemoryDirectory.Item, at path: RelativePath) {
    guard let parent = path.parent else { return }
    if items[path] != nil { take(path) }
    if items[parent] == nil { put(.folder, at: parent) }
    items[path] = item
    for watcher in watchers.values { watcher.yield() }
    children[parent, default: []].insert(path.name)
    size += item.size
  }

  fileprivate mutating func take(_ path: RelativePath) {
    for name in children[path] ?? [] { take(path / name) }
    children[path] = nil
    guard let item = items.removeValue(forKey: path), let parent = path.parent else { return }
    size -= item.size
    children[parent]?.remove(path.name)
    for watcher in watchers.values { watcher.yield() }
  }
}

extension RelativePath {
  /// Returns the path of an entry of this folder. The name must be valid.
  static func / (folder: RelativePath, name: String) -> RelativePath {
    guard let path = folder.appending(name) else {
      preconditionFailure("\(name) cannot be a name")
    }
    return path
  }
}
