import Foundation
import SyncModel

/// Keys in files of mode 0600, in a folder of mode 0700 below the user's data folder.
///
/// A file that other users could read, or that belongs to another user, is refused with the
/// command that mends it. Every change replaces a file as a whole, flushed before and after, and
/// happens under a lock, so that two processes at once lose nothing. The files of two machines that
/// share a home folder have different names: a machine has keys of its own.
package struct FileKeyStore: KeyStore {
  /// The path of the folder.
  package let folder: String
  private let machine: String

  /// Creates a store in a folder, which need not exist.
  ///
  /// - Parameter machine: What the system tells this machine from others by.
  package init(folder: String, machine: [UInt8] = []) {
    self.folder = folder
    self.machine = String(Base32.encode(Label.machine.hash(machine)).prefix(10))
  }

  /// Returns the folder for a user's keys: `docsync/keys` in `XDG_DATA_HOME` or
  /// `~/.local/share`; in Application Support on Apple's systems. Returns `nil` if the user has no
  /// home.
  package static func defaultFolder(
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> String? {
    #if canImport(Darwin)
      let base = "Library/Application Support"
    #else
      let base = ".local/share"
      // The specification says to ignore relative paths.
      if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") {
        return data + "/docsync/keys"
      }
    #endif
    guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
    return "\(home)/\(base)/docsync/keys"
  }

  /// Returns the keys for an application; `nil` if there are none.
  package func keys(for root: RootIdentifier) throws -> StoredKeys? {
    try perform {
      guard let folder = try KeyFolder(opening: self.folder) else { return nil }
      return try read(root, in: folder)
    }
  }

  /// Changes the keys for an application, while no other process does.
  package func update<Result>(
    _ root: RootIdentifier, _ change: (inout StoredKeys?) throws -> Result
  ) throws -> Result {
    let folder = try perform { try KeyFolder(creating: self.folder) }
    return try perform {
      try folder.lock(name(of: root) + ".lock")
    } withLock: {
      let before = try perform { try read(root, in: folder) }
      var keys = before
      let result = try change(&keys)
      guard keys != before else { return result }
      try perform {
        if let keys {
          try folder.replace(name(of: root), with: keys.encoded())
        } else {
          try folder.remove(name(of: root))
        }
      }
      return result
    }
  }

  private func name(of root: RootIdentifier) -> String { "\(root).\(machine).keys" }

  private func read(_ root: RootIdentifier, in folder: KeyFolder) throws -> StoredKeys? {
    guard let bytes = try folder.read(name(of: root)) else { return nil }
    do {
      return try StoredKeys(decoding: bytes)
    } catch let error as CodecError {
      throw SecurityError(
        .keysDamaged, "The file with this device's keys is damaged.",
        remedy: error.needsNewerReader
          ? "Update DocumentSync on this device."
          : "Restore the file from a backup, or move it away and join the application again.",
        path: "\(folder.path)/\(name(of: root))", detail: "\(error.code): \(error.what)")
    }
  }

  /// Runs a part whose failures are those of the system.
  private func perform<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let failure as KeyFolder.Failure {
      throw SecurityError(
        .keysUnavailable, "The keys of this device cannot be read or written.",
        remedy: "Check that the folder exists and belongs to you, and that the disk has space.",
        path: failure.path, detail: "\(failure.call): \(failure.text)")
    }
  }

  private func perform<Result>(
    _ lock: () throws -> KeyFolder.Lock, withLock body: () throws -> Result
  ) throws -> Result {
    let held = try perform(lock)
    defer { held.release() }
    return try body()
  }
}
