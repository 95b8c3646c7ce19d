import SyncDirectory
import SyncModel

/// A folder on a simulated disk that loses power. Any part of the changes that were not flushed may
/// remain, in any order, torn or not.
///
/// A `FolderDirectory` does the work in an existing folder and reports each change and each flush,
/// from which this type computes the remains after a power cut.
public final class PowerLossDisk: Sendable {
  /// The effect of a flush on the disk.
  public enum Medium: String, Hashable, Sendable, CaseIterable {
    /// Only what POSIX promises: flushing a file writes its bytes, flushing a folder writes its
    /// names.
    case posix
    /// The folder stores the length of a file. A new name, also after renaming, has the length 0
    /// until the file is flushed.
    case vfat
  }

  private struct Log {
    var steps: [DiskStep] = []
    /// The number of steps that no power cut can undo.
    var settled = 0
    var stop = Int.max
  }

  /// The shared directory in the folder, for any number of devices.
  public let directory: FolderDirectory
  private let log: Locked<Log>

  /// Creates a disk with the folder at a path. The folder must exist and be empty.
  public init(root: String) {
    let log = Locked(Log())
    self.log = log
    var directory = FolderDirectory(root: root)
    directory.observer = { step in
      try log.withLock { log in
        guard log.steps.count < log.stop else { throw SimulatedStop() }
        log.steps.append(step)
      }
    }
    self.directory = directory
  }

  /// The number of changes and flushes so far.
  public var stepCount: Int { log.withLock { $0.steps.count } }

  /// Writes all changes to the disk.
  public func settle() { log.withLock { $0.settled = $0.steps.count } }

  /// Makes the given step, counted from now on, and all later steps fail with ``SimulatedStop``.
  public func cutPower(beforeStep number: Int) {
    log.withLock { $0.stop = $0.steps.count + number - 1 }
  }

  /// Returns the files that a power cut at this moment leaves.
  ///
  /// - Parameters:
  ///   - medium: The effect of a flush.
  ///   - keepsFlushes: Whether the disk obeys flushes; if not, it only pretends to.
  ///   - rate: The share of unflushed changes that remains, from 0 to 1.
  ///   - seed: The seed that determines which of them remain.
  public func remains(
    on medium: Medium, keepsFlushes: Bool = true, rate: Double, seed: UInt64
  ) -> [RelativePath: [UInt8]] {
    let log = log.withLock(\.self)
    var disk = Disk(medium: medium)
    for (index, step) in log.steps.enumerated() {
      if index == log.settled { disk.settle() }
      if keepsFlushes || index < log.settled || !step.isFlush { disk.take(step) }
    }
    if log.steps.count == log.settled { disk.settle() }
    var random = SeededRandom(seed: seed)
    return disk.remains(rate: rate, &random)
  }
}

extension DiskStep {
  fileprivate var isFlush: Bool {
    switch self {
    case .flushFile, .flushFolder: true
    default: false
    }
  }
}

/// The content of a disk and the changes that are not on it yet.
private struct Disk {
  private enum Change {
    case bytes(Int, at: Int, [UInt8])
    case name(RelativePath, Int)
    case length(RelativePath, Int)
    case noName(RelativePath, Int)
    case folder(RelativePath)
  }

  private struct Entry {
    var node: Int
    var hasLength: Bool
  }

  let medium: PowerLossDisk.Medium
  /// The file of each name, as programs see it.
  private var names: [RelativePath: Int] = [:]
  private var lengths: [Int] = []
  /// The changes that are not on the disk yet, in order.
  private var pending: [Change] = []
  // The content of the disk.
  private var entries: [RelativePath: Entry] = [:]
  private var folders: Set<RelativePath> = [.root]
  private var content: [Int: [UInt8]] = [:]

  init(medium: PowerLossDisk.Medium) { self.medium = medium }

  mutating func take(_ step: DiskStep) {
    switch step {
    case .makeFolder(let path): pending.append(.folder(path))
    case .create(let path):
      names[path] = lengths.count
      pending.append(.name(path, lengths.count))
      pending.append(.length(path, lengths.count))
      lengths.append(0)
    case .write(let path, let bytes):
      guard let node = names[path] else { return }
      pending.append(.bytes(node, at: lengths[node], bytes))
      lengths[node] += bytes.count
    case .rename(let from, let to):
      guard let node = names.removeValue(forKey: from) else { return }
      names[to] = node
      pending += [.name(to, node), .length(to, node), .noName(from, node)]
    case .remove(let path):
      if let node = names.removeValue(forKey: path) { pending.append(.noName(path, node)) }
    case .flushFile(let path):
      guard let node = names[path] else { return }
      let bringsNames = medium == .vfat
      flush { change in
        switch change {
        case .bytes(let other, _, _): other == node
        case .name(let other, _), .length(let other, _): bringsNames && other == path
        case .noName, .folder: false
        }
      }
    case .flushFolder(let folder):
      flush { change in
        switch change {
        case .name(let path, _), .noName(let path, _), .folder(let path): path.parent == folder
        case .bytes, .length: false
        }
      }
    }
  }

  mutating func settle() { flush { _ in true } }

  private mutating func flush(_ isFlushed: (Change) -> Bool) {
    let flushed = pending.filter(isFlushed)
    pending.removeAll(where: isFlushed)
    for change in flushed { apply(change) }
  }

  private mutating func apply(_ change: Change) {
    switch change {
    case .bytes(let node, let offset, let bytes):
      var all = content[node] ?? []
      if all.count < offset { all += [UInt8](repeating: 0, count: offset - all.count) }
      all.replaceSubrange(offset..<min(all.count, offset + bytes.count), with: bytes)
      content[node] = all
    case .name(let path, let node):
      if entries[path]?.node != node {
        entries[path] = Entry(node: node, hasLength: medium == .posix)
      }
    case .length(let path, let node):
      if entries[path]?.node == node { entries[path]?.hasLength = true }
    case .noName(let path, let node):
      if entries[path]?.node == node { entries[path] = nil }
    case .folder(let path): folders.insert(path)
    }
  }

  func remains(rate: Double, _ random: inout SeededRandom) -> [RelativePath: [UInt8]] {
    func isDrawn() -> Bool { Double.random(in: 0..<1, using: &random) < rate }
    var disk = self
    for change in pending where isDrawn() {
      if case .bytes(let node, let offset, let bytes) = change, Bool.random(using: &random) {
        // Torn: the rest is missing, or its place has zeros.
        let count = Int.random(in: 0...bytes.count, using: &random)
        let rest = Bool.random(using: &random) ? bytes.count - count : 0
        disk.apply(
          .bytes(node, at: offset, bytes.prefix(count) + [UInt8](repeating: 0, count: rest)))
      } else {
        disk.apply(change)
      }
    }
    var found: [RelativePath: [UInt8]] = [:]
    for (path, entry) in disk.entries {
      var folder = path.parent
      while let reached = folder, disk.folders.contains(reached) { folder = reached.parent }
      guard folder == nil else { continue }
      found[path] = entry.hasLength ? disk.content[entry.node] ?? [] : []
    }
    return found
  }
}
