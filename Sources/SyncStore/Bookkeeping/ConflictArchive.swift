import Foundation
import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The file beside a store with the conflicts that have left the table of the journal.
///
/// It consists of blocks (``ArchiveBlock``). The store records which of them count
/// (``ArchiveState``), in the transaction that moves their conflicts:
///
/// 1. A transaction writes a block after the last one that counts, and flushes it. Until the
///    transaction commits, the block does not count, and the store has its conflicts.
/// 2. The next transaction that writes cuts off what follows the last block that counts.
/// 3. If the blocks that count have more than three quarters of ``bound``, the oldest ones no longer
///    count. A later transaction removes them from the file: a transaction that is rolled back must
///    not have removed them.
///
/// A process that ends between any two steps thus leaves each conflict in the store or in a block that
/// counts, and in only one of them. Only a transaction that may write to the store writes to the
/// file, so there is one writer at a time. A transaction that only reads may meanwhile have an older
/// state of the store, by which blocks count that are not in the file any more. It finds out that they
/// are missing; if it is one of ``LocalStore/lastCommitted``, it throws ``IncompleteArchive``, and the
/// connection that writes is asked.
///
/// The file never stops a transaction: if a method throws ``ArchiveProblem``, the conflicts stay in
/// the store. A file that has no block of this store is moved aside, not overwritten. A file of a
/// later version stays as it is.
final class ConflictArchive {
  /// The part of the name after that of the store.
  static let suffix = "-docsync-conflicts"

  /// The path; links to the store are followed, as SQLite does.
  private(set) lazy var path = Self.path(beside: store)
  private let store: String
  /// The most bytes of the file, apart from what one transaction adds.
  let bound: Int
  /// Whether the transaction has written to the file before, by another object. What counted then
  /// may not count any more, and must stay nevertheless.
  private let isContinuing: Bool
  /// Whether reading throws ``IncompleteArchive`` if the file does not have all that counts.
  let mustBeWhole: Bool
  private let onStep: (@Sendable (ConflictArchiveStep) throws -> Void)?
  private var writer: Writer?

  private struct Writer {
    var handle: FileHandle
    /// The blocks that count, the oldest first.
    var live: [ArchiveBlock]
    /// The end of the file.
    var end: Int
    /// Whether the name of the file may not be durable: a process that has ended may have made the
    /// file.
    var isNew: Bool
  }

  init(
    store: String, bound: Int, isContinuing: Bool = false, mustBeWhole: Bool = false,
    onStep: (@Sendable (ConflictArchiveStep) throws -> Void)? = nil
  ) {
    self.store = store
    self.bound = bound
    self.isContinuing = isContinuing
    self.mustBeWhole = mustBeWhole
    self.onStep = onStep
  }

  static func path(beside store: String) -> String { StoreFilePath.beside(store, suffix) }

  /// The most bytes of values in an entry: it is in memory as a whole, several times over.
  var entryBytes: Int { min(8 << 20, bound / 2) }

  /// The most bytes of lines in a block, unless one line is longer: blocks are what is removed.
  var blockBytes: Int { min(1 << 20, bound / 16) }

  // MARK: - Writing

  /// Adds a block, durably. Returns the conflicts that are no longer kept, since the file that had
  /// them is gone or not this store's.
  func append(
    _ content: ArchiveBlock.Content, _ state: inout ArchiveState
  ) throws(ArchiveProblem) -> Conflict.Dropped {
    var after = state
    var lost = Conflict.Dropped()
    do {
      var writer = try self.writer ?? open(&after, &lost)
      self.writer = nil
      try onStep?(.writing)
      let (block, bytes) = try ArchiveBlock.make(
        of: content, journal: after.journal, number: after.last + 1, at: writer.end)
      try writer.handle.seek(toOffset: UInt64(writer.end))
      try writer.handle.write(contentsOf: bytes)
      try onStep?(.written)
      try writer.handle.synchronize()
      if writer.isNew { try flushFolder() }
      writer.isNew = false
      try onStep?(.flushed)
      writer.live.append(block)
      writer.end = block.end
      after.add(content.index, count: content.count)
      after.problem = nil
      self.writer = writer
    } catch let problem as ArchiveProblem {
      throw problem
    } catch {
      throw ArchiveProblem(error)
    }
    state = after
    return lost
  }

  /// Lets the oldest blocks no longer count if they are too long. Returns their conflicts.
  func trim(_ state: inout ArchiveState) -> Conflict.Dropped {
    guard var writer else { return Conflict.Dropped() }
    let lost = state.forgetOldest(of: writer.live, downTo: bound - bound / 4)
    writer.live.removeAll { $0.number < state.first }
    self.writer = writer
    return lost
  }

  /// Opens the file for writing, and creates it if there is none.
  private func open(
    _ state: inout ArchiveState, _ lost: inout Conflict.Dropped
  ) throws -> Writer {
    try onStep?(.opening)
    if try Self.exists(path) {
      let handle = try handle(path, O_RDWR)
      let file = try ArchiveFile(handle)
      guard !file.isOfLaterVersion else { throw ArchiveProblem(.laterVersion) }
      if try file.hasBlocks(of: state.journal)
        || state.count == 0 && file.isTornBegin(of: state.journal)
      {
        return try mended(file, state)
      }
      try handle.close()
      if file.length > 0 {
        state.notices.append(movedAside(to: try moveAside(), state))
        lost = state.forgetAll()
      }
    }
    if state.count > 0 {
      state.notices.append(missing(state))
      lost = state.forgetAll()
    }
    return Writer(handle: try handle(path, O_RDWR), live: [], end: 0, isNew: true)
  }

  /// Cuts off what follows the last block that counts, and removes the blocks that count no more.
  private func mended(_ file: ArchiveFile, _ state: ArchiveState) throws -> Writer {
    if unlink(path + "-new") != 0, errno != ENOENT { throw ArchiveProblem.ofLastCall }
    let live = file.live(state)
    var end = max(file.length, file.tornEnd ?? 0)
    // If the last block is damaged, blocks that are found later may be its parts.
    let isWhole = live.last.map { $0.number == state.last } ?? (state.count == 0)
    if isWhole, !file.blocks.contains(where: { $0.journal != Array(state.journal) }) {
      end = live.last?.end ?? 0
      if end < file.length {
        try file.handle.truncate(atOffset: UInt64(end))
        try onStep?(.cut)
      }
    }
    if end > file.length { try file.handle.truncate(atOffset: UInt64(end)) }
    let begin = live.map(\.offset).min() ?? (isWhole ? end : 0)
    guard begin > bound / 8, !isContinuing else {
      return Writer(handle: file.handle, live: live, end: end, isNew: true)
    }
    return try copied(file, begin..<end, live)
  }

  /// Copies a part of the file to a new file, which takes its place.
  private func copied(
    _ file: ArchiveFile, _ range: Range<Int>, _ live: [ArchiveBlock]
  ) throws -> Writer {
    let copy = path + "-new"
    let handle = try handle(copy, O_RDWR | O_TRUNC)
    do {
      try Self.copy(file, range, to: handle)
      try handle.synchronize()
      try onStep?(.copied)
      guard rename(copy, path) == 0 else { throw ArchiveProblem.ofLastCall }
    } catch {
      guard unlink(copy) == 0 || errno == ENOENT else { throw ArchiveProblem.ofLastCall }
      throw error
    }
    try flushFolder()
    try onStep?(.renamed)
    try file.handle.close()
    let moved = live.map { block in
      var block = block
      block.offset -= range.lowerBound
      return block
    }
    return Writer(handle: handle, live: moved, end: range.count, isNew: true)
  }

  /// Gives the file a name under which no store looks for it. Returns that name.
  private func moveAside() throws -> String {
    let aside = try Self.moveAside(path)
    try flushFolder()
    return aside
  }

  private static func moveAside(_ path: String) throws -> String {
    var number = 1
    while try exists("\(path).old-\(number)", ofAnyType: true) { number += 1 }
    let aside = "\(path).old-\(number)"
    guard rename(path, aside) == 0 else { throw ArchiveProblem.ofLastCall }
    return aside
  }

  /// Moves the file of a store that is about to be moved. If something has the name already, that is
  /// moved aside. Throws ``StoreError``.
  static func move(from store: String, to other: String) throws {
    let path = Self.path(beside: store)
    let new = Self.path(beside: other)
    try moving(to: new) {
      guard try exists(path) else { return }
      if try exists(new, ofAnyType: true) { _ = try moveAside(new) }
      guard rename(path, new) == 0 else { throw ArchiveProblem.ofLastCall }
    }
  }

  /// Adds the blocks of a store's file to the file of the database whose place the store is about to
  /// take. Those of both count for their own store, so it does not matter which of the two is there
  /// afterwards. The caller has locked the database. Throws ``StoreError``, with nothing changed.
  static func add(fileOf new: String, to store: String) throws {
    let archive = ConflictArchive(store: store, bound: 0)
    try moving(to: archive.path) {
      guard try exists(path(beside: new)) else { return }
      let added = try ArchiveFile(
        FileHandle(forReadingFrom: URL(fileURLWithPath: path(beside: new))))
      try archive.replace { output in
        var end = 0
        if try exists(archive.path) {
          let former = try ArchiveFile(
            FileHandle(forReadingFrom: URL(fileURLWithPath: archive.path)))
          guard !former.isOfLaterVersion else { throw ArchiveProblem(.laterVersion) }
          try copy(former, 0..<former.length, to: output)
          end = max(former.length, former.tornEnd ?? 0)
        }
        try output.truncate(atOffset: UInt64(end))
        try output.seekToEnd()
        for block in added.blocks { try copy(added, block.offset..<block.end, to: output) }
      }
    }
  }

  /// Copies the file of a store, to be that of a copy of the store. Throws ``StoreError``.
  static func copy(from store: String, to other: String) throws {
    let archive = ConflictArchive(store: other, bound: 0)
    try moving(to: archive.path) {
      guard try exists(path(beside: store)) else { return }
      let file = try ArchiveFile(
        FileHandle(forReadingFrom: URL(fileURLWithPath: path(beside: store))))
      try archive.replace { try copy(file, 0..<file.length, to: $0) }
    }
  }

  private static func moving(to path: String, _ body: () throws -> Void) throws {
    do {
      do {
        try body()
      } catch let error where error is CocoaError || error is POSIXError {
        throw ArchiveProblem(error)
      }
    } catch let problem as ArchiveProblem {
      throw StoreError(
        .notWritable, path: path, message: "The older conflicts could not be moved there.",
        remedy: problem.remedy, detail: problem.detail)
    }
  }

  /// Puts a new file, which `body` writes, into the place of the file, durably.
  private func replace(_ body: (FileHandle) throws -> Void) throws {
    let copy = path + "-new"
    let handle = try handle(copy, O_RDWR | O_TRUNC)
    do {
      try body(handle)
      try handle.synchronize()
      try handle.close()
      guard rename(copy, path) == 0 else { throw ArchiveProblem.ofLastCall }
    } catch {
      guard unlink(copy) == 0 || errno == ENOENT else { throw ArchiveProblem.ofLastCall }
      throw error
    }
    try flushFolder()
  }

  private static func copy(_ file: ArchiveFile, _ range: Range<Int>, to output: FileHandle) throws {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let part = try file.read(min(1 << 20, range.upperBound - offset), at: offset)
      guard !part.isEmpty else { throw ArchiveProblem(.failed, detail: "it became shorter") }
      try output.write(contentsOf: part)
      offset += part.count
    }
  }

  private func handle(_ path: String, _ flags: Int32) throws -> FileHandle {
    let descriptor = StoreFileMode.open(path, flags, like: store)
    guard descriptor >= 0 else { throw ArchiveProblem.ofLastCall }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  /// Makes the name of the file durable, where the file system supports that.
  private func flushFolder() throws {
    try FileFlush.flush(URL(fileURLWithPath: path).deletingLastPathComponent().path)
  }

  // MARK: - Warnings

  private func missing(_ state: ArchiveState) -> SyncWarning {
    var warning = SyncWarning(
      .conflictArchive,
      message: "\(state.count) older conflicts are gone: the file “\(path)” is missing. "
        + "It was removed or moved, or the database was copied without it.")
    warning.reason = "missing"
    return warning
  }

  private func movedAside(to aside: String, _ state: ArchiveState) -> SyncWarning {
    var warning = SyncWarning(
      .conflictArchive,
      message: "“\(path)” has no conflicts of this database"
        + (state.count > 0 ? ", which had \(state.count) there" : "")
        + ". It was moved to “\(aside)”. Remove that, unless it belongs to another database.")
    warning.reason = "movedAside"
    return warning
  }

  // MARK: - Reading

  /// Runs `body` with the file; returns `nil` if there is none. Throws ``ArchiveProblem``, and what
  /// `body` throws.
  func reading<Result>(_ body: (ArchiveFile) throws -> Result) throws -> Result? {
    do {
      guard try Self.exists(path) else { return nil }
      let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      let file = try ArchiveFile(handle)
      guard !file.isOfLaterVersion else { throw ArchiveProblem(.laterVersion) }
      let result = try body(file)
      try handle.close()
      return result
    } catch let error where error is CocoaError || error is POSIXError {
      throw ArchiveProblem(error)
    }
  }

  /// Returns whether a file is at a path. Throws ``ArchiveProblem`` if something else is, which must
  /// not be opened.
  static func exists(_ path: String, ofAnyType: Bool = false) throws -> Bool {
    var information = stat()
    guard stat(path, &information) == 0 else {
      guard errno == ENOENT else { throw ArchiveProblem.ofLastCall }
      // A link that leads nowhere counts as something else.
      guard lstat(path, &information) == 0 else { return false }
      if ofAnyType { return true }
      throw ArchiveProblem(.notAFile)
    }
    guard ofAnyType || information.st_mode & S_IFMT == S_IFREG else {
      throw ArchiveProblem(.notAFile)
    }
    return true
  }
}
