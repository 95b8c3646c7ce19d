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
          + "then sync again.",
        detail: "root \(binding.root)")
    }
    guard roots.contains(binding.root) else { throw otherRoot(binding, roots) }
  }

  /// The error of a directory that has other roots.
  func otherRoot(_ binding: StoreBinding, _ roots: Set<RootIdentifier>) -> SyncError {
    context.error(
      .otherRoot, path: directory.location,
      "This is not the shared directory that the store belongs to.",
      remedy: "Sync with the directory in which the document “\(binding.documentIdentifier)” is.",
      detail: "root \(roots.sorted().map(\.description).joined(separator: ", ")) instead of "
        + "\(binding.root)")
  }

  /// Has the root of a store checked before the next file is read, written or
  /// removed. No file is touched if the root is missing or another one.
  ///
  /// A synchronization that has nothing to do lists nothing for it.
  func expectRoot(_ binding: StoreBinding) { expectations.add(binding) }

  /// Checks the roots that are expected, unless that was done. Call it if the
  /// store is about to change before a file is touched.
  func confirmRoot() throws { try expectations.meet(checkRoot) }
}

/// The roots that have to be in the directory before a file in it is touched.
final class RootExpectations: Sendable {
  private let lock = NSLock()
  nonisolated(unsafe) private var open: [StoreBinding] = []
  nonisolated(unsafe) private var met: Set<RootIdentifier> = []

  /// Expects the root of a binding.
  func add(_ binding: StoreBinding) {
    lock.withLock {
      guard !met.contains(binding.root), !open.contains(where: { $0.root == binding.root }) else {
        return
      }
      open.append(binding)
    }
  }

  /// Checks those that are open. Other threads wait meanwhile, so that no file
  /// is touched before.
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
