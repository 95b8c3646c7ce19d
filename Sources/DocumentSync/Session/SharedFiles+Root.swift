import Foundation
import SyncDirectory
import SyncModel
import SyncStore

extension SharedFiles {
  /// The roots of the application files in the directory.
  func roots() throws -> Set<RootIdentifier> {
    Set(
      try list(.root, as: RootName.self).compactMap { name in
        if case .application(let name) = name { name.root } else { nil }
      })
  }

  /// Throws unless the directory is the one that a store is bound to.
  func checkRoot(_ binding: StoreBinding) throws {
    let roots = try roots()
    guard !roots.isEmpty else {
      throw context.error(
        .rootMissing, path: directory.location,
        "The shared directory is empty. It may not be mounted, or not downloaded yet.",
        remedy: "Connect or mount the shared directory, and wait until it has arrived completely, "
          + "then try again.",
        detail: "root \(binding.root)")
    }
    guard roots.contains(binding.root) else { throw otherRoot(binding, roots) }
  }

  /// The error of a directory with other roots.
  func otherRoot(_ binding: StoreBinding, _ roots: Set<RootIdentifier>) -> SyncError {
    context.error(
      .otherRoot, path: directory.location,
      "This is not the shared directory that the store belongs to.",
      remedy: "Sync with the directory in which the document “\(binding.documentIdentifier)” is.",
      detail: "root \(roots.sorted().map(\.description).joined(separator: ", ")) instead of "
        + "\(binding.root)")
  }

  /// Requires that the root of a store is checked before the next file is read,
  /// written or removed. If the root is missing or another one, no file is
  /// touched.
  ///
  /// A synchronization that has nothing to do needs no listing for it.
  func expectRoot(_ binding: StoreBinding) { expectations.add(binding) }

  /// Checks the expected roots, unless that was done. Call it before the store
  /// changes, if no file was touched yet.
  func confirmRoot() throws { try expectations.meet(checkRoot) }
}

/// The roots that have to be in the directory before any file in it is touched.
final class RootExpectations: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var open: [StoreBinding] = []
  nonisolated(unsafe) private var met: Set<RootIdentifier> = []

  /// Adds the root of a binding to the expected ones.
  func add(_ binding: StoreBinding) {
    lock.withLock {
      guard !met.contains(binding.root), !open.contains(where: { $0.root == binding.root }) else {
        return
      }
      open.append(binding)
    }
  }

  /// Checks the roots that were not checked. Other threads wait meanwhile, so
  /// that they touch no file before.
  func meet(_ check: (StoreBinding) throws -> Void) throws {
    try lock.withLock {
      while let binding = open.last {
        try check(binding)
        met.insert(binding.root)
        open.removeLast()
      }
    }
  }
}
