import Foundation
import SyncModel

/// The place of a store's file, which distinguishes the store from its copies.
///
/// It does not contain the number of the disk: on many systems that changes with each start.
package struct StorePlace: Hashable, Sendable, Codable {
  /// The machine, as `StorePlaces` names it.
  package var machine: String
  /// The file's inode.
  package var inode: UInt64
  /// The absolute path.
  package var path: String

  /// Creates a place from its parts.
  package init(machine: String, inode: UInt64, path: String) {
    self.machine = machine
    self.inode = inode
    self.path = path
  }

  /// Returns whether stores with these places can be the same file.
  func isSame(as other: StorePlace) -> Bool {
    machine == other.machine && inode == other.inode
  }
}

/// A store's record of its place, and of the tokens that are also stored outside the file and
/// reveal that the file was restored from a backup.
///
/// A process with another home folder has another folder for the tokens, and a token of its own
/// there.
struct PlaceRecord: Hashable, Codable {
  var place: StorePlace
  /// The tokens by folder. The store draws a new one before it publishes change sets.
  private var tokens: [String: String]?
  /// The only token, for all folders, in stores of earlier versions.
  private var token: String?

  init(place: StorePlace) { self.place = place }

  /// Returns the same record with another place.
  func moved(to place: StorePlace) -> Self {
    var record = self
    record.place = place
    return record
  }

  /// Returns the token in a folder, or `nil` if there was none.
  func token(in folder: String?) -> String? { folder.flatMap { tokens?[$0] } ?? token }

  /// Records the token that a folder holds from now on.
  ///
  /// - Parameter held: The tokens that the folder held before.
  mutating func note(_ token: String, in folder: String, held: [String]) {
    tokens = tokens ?? [:]
    tokens?[folder] = token
    // If this folder did not hold it, the former token still stands for another folder.
    if let former = self.token, held.contains(former) { self.token = nil }
  }

  /// Returns whether the tokens that a folder holds for the store's client show that the store is
  /// an older state of itself, such as a restored backup; `held` is `nil` if the folder holds none.
  func isOlder(than held: [String]?, in folder: String?) -> Bool {
    guard let held else { return false }
    // Without a token for the folder, the store is older than the state that used the folder.
    return token(in: folder).map { !held.contains($0) } ?? true
  }
}

extension PlaceRecord: StoredValue {
  /// A file system may give a file any number, which is only compared.
  func checkNumbers() throws {}
}

/// Tells where stores are, and keeps their tokens outside of them.
package struct StorePlaces: Sendable {
  /// An identifier of the machine. A copy of a store on another machine finds another one.
  package var machine: String
  /// The folder of the tokens' files, which is created when it is needed; `nil` stores no tokens.
  package var folder: String?

  /// Creates places from the machine's identifier and the folder.
  package init(machine: String, folder: String?) {
    self.machine = machine
    self.folder = folder
  }

  /// This machine, with tokens in the user's state folder:
  /// `$XDG_STATE_HOME/docsync` or else `~/.local/state/docsync`, on Apple's
  /// systems in Application Support.
  ///
  /// <https://specifications.freedesktop.org/basedir-spec/latest/>
  package static var system: StorePlaces {
    StorePlaces(machine: systemMachine, folder: systemFolder)
  }

  private static var systemMachine: String {
    // <https://www.freedesktop.org/software/systemd/man/latest/machine-id.html>
    for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
      guard let data = FileManager.default.contents(atPath: path) else { continue }
      let text = String(decoding: data, as: UTF8.self)
        .trimmingCharacters(in: .whitespacesAndNewlines)
      if !text.isEmpty { return text }
    }
    return ProcessInfo.processInfo.hostName
  }

  private static var systemFolder: String? {
    let environment = ProcessInfo.processInfo.environment
    if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
      return state + "/docsync"
    }
    #if canImport(Darwin)
      return FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        .first?.appendingPathComponent("docsync").path
    #else
      guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
      return home + "/.local/state/docsync"
    #endif
  }

  /// Returns the place of the file at `path`. Throws if the file cannot be inspected.
  func place(of path: String) throws -> StorePlace {
    let attributes: [FileAttributeKey: Any]
    do {
      attributes = try FileManager.default.attributesOfItem(
        atPath: URL(fileURLWithPath: path).resolvingSymlinksInPath().path)
    } catch {
      throw StoreError(
        .missing, path: path, message: "The database file cannot be inspected.",
        remedy: "Check the path and the permissions of its folder.", detail: "\(error)")
    }
    let inode = (attributes[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0
    return StorePlace(
      machine: machine, inode: inode,
      path: URL(fileURLWithPath: path).standardizedFileURL.resolvingSymlinksInPath().path)
  }

  /// Returns the tokens that a client's store may have: one, or two while it is being changed; none
  /// if the store has become another client. Returns `nil` if the folder has no file for the
  /// client.
  func tokens(of client: String) throws -> [String]? {
    try lines(of: client)?.filter { !$0.hasPrefix(Self.successor) }
  }

  /// Returns the clients that the stores of a client have become on this machine, recorded when no
  /// store of that client was left.
  func successors(of client: String) throws -> [String] {
    (try lines(of: client) ?? []).filter { $0.hasPrefix(Self.successor) }.map {
      String($0.dropFirst(Self.successor.count))
    }
  }

  /// Returns the clients that the stores of a client became, one after the other.
  func allSuccessors(of client: ClientIdentifier) throws -> [ClientIdentifier] {
    var found: [ClientIdentifier] = []
    var open = [client]
    while let next = open.popLast() {
      let successors = try successors(of: next.description).compactMap {
        ClientIdentifier($0)
      }.filter { $0 != client && !found.contains($0) }
      found += successors
      open += successors
    }
    return found
  }

  /// Records that the store of a client has become another client, so that an older state of the
  /// store finds out which one.
  func keep(successor: String, of client: String) throws {
    let known = try successors(of: client).filter { $0 != successor }
    _ = try keep((known + [successor]).map { Self.successor + $0 }, of: client)
  }

  private static let successor = "successor "

  private func lines(of client: String) throws -> [String]? {
    guard let folder, FileManager.default.fileExists(atPath: file(client, in: folder)) else {
      return nil
    }
    do {
      let data = try Data(contentsOf: URL(fileURLWithPath: file(client, in: folder)))
      return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    } catch {
      throw failure(client, folder, error)
    }
  }

  /// Writes the tokens that a client's store may have; an empty list removes the file. Returns
  /// false if the folder cannot be used. If the disk loses the tokens in a power failure, the store
  /// becomes a new client, and nothing is lost.
  func keep(_ tokens: [String], of client: String) throws -> Bool {
    guard let folder else { return false }
    let path = file(client, in: folder)
    do {
      if tokens.isEmpty {
        guard FileManager.default.fileExists(atPath: path) else { return true }
        try FileManager.default.removeItem(atPath: path)
        return true
      }
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      // A folder that an earlier version made may be open to other users.
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder)
      let content = Data((tokens.joined(separator: "\n") + "\n").utf8)
      try content.write(to: URL(fileURLWithPath: path), options: .atomic)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      return true
    } catch let error as CocoaError where Self.isRefusal(error) {
      // No home, or a read-only one: the place and the shared directory have to reveal copies.
      return false
    } catch {
      throw failure(client, folder, error)
    }
  }

  private static func isRefusal(_ error: CocoaError) -> Bool {
    [.fileWriteNoPermission, .fileWriteVolumeReadOnly, .fileNoSuchFile, .fileWriteUnknown]
      .contains(error.code)
  }

  private func file(_ client: String, in folder: String) -> String { "\(folder)/\(client).token" }

  private func failure(_ client: String, _ folder: String, _ error: any Error) -> StoreError {
    StoreError(
      .notWritable, path: file(client, in: folder),
      message: "The token file, which detects restored copies of the database, cannot be used.",
      remedy: "Check the permissions of that folder and the space on its disk.",
      detail: "\(error)")
  }
}
