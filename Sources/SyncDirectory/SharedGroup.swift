import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

private typealias SystemGroup = group

/// The group whose users share a root, with the permissions that the root gives to it.
///
/// Two users of one server share a folder through its group (`chmod 2775`). A folder or a file that
/// one of them creates has the group and the mode that the process would give to any other file, so
/// a umask of 022 would close it to the other user. What is created below such a root therefore
/// takes over its group and its permissions.
struct SharedGroup {
  private let group: gid_t
  /// The group's permissions in the root, and whether new files take over the root's group.
  private let mode: mode_t

  /// Reads the group of a root; `nil` if the group may not write to the root.
  init?(root: OpenFile) throws {
    let status = try root.systemStatus()
    guard status.st_mode & Self.write != 0 else { return nil }
    group = status.st_gid
    mode = status.st_mode & (Self.all | mode_t(S_ISGID))
  }

  private static let read: mode_t = 0o040
  private static let write: mode_t = 0o020
  private static let all: mode_t = 0o070

  /// Gives the group and the permissions of the root to a folder or a file of this user.
  ///
  /// Does nothing where the system does not allow it: the user may not be a member of the group, or
  /// the file system may have no modes.
  func open(_ file: OpenFile) throws {
    let status = try file.systemStatus()
    guard status.st_uid == geteuid() else { return }
    // Changing the group may clear bits of the mode, so it comes first.
    if status.st_gid != group {
      try Self.allowingRefusal("fchown") { fchown(file.descriptor, uid_t.max, group) }
    }
    let wanted = status.st_mode | missing(from: status)
    if wanted != status.st_mode {
      try Self.allowingRefusal("fchmod") { fchmod(file.descriptor, wanted & 0o7777) }
    }
  }

  /// Returns whether the users of the group cannot use a folder or a file as they can use the root.
  func isClosed(_ status: stat) -> Bool {
    if status.st_gid != group { return true }
    let needed = status.st_mode & S_IFMT == S_IFDIR ? mode & Self.all : Self.read
    return status.st_mode & needed != needed
  }

  private func missing(from status: stat) -> mode_t {
    let isFolder = status.st_mode & S_IFMT == S_IFDIR
    return (isFolder ? mode : mode & (Self.read | Self.write)) & ~status.st_mode
  }

  private static func allowingRefusal(_ call: String, _ body: () -> Int32) throws {
    do {
      try SystemFailure.check(call, body)
    } catch let failure as SystemFailure
      where [EPERM, EACCES, EROFS, EINVAL, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(failure.number)
    {
      return
    }
  }

  // MARK: - Messages

  /// The closed folders and files with the given names and owners.
  func closed(_ names: [String], owners: Set<uid_t>, root: String) -> ClosedEntries {
    let path = "'" + root.replacing("'", with: #"'\''"#) + "'"
    return ClosedEntries(
      names: names, group: name, owners: Set(owners.map(Self.name(ofUser:))),
      commands:
        "chgrp -R \(name) \(path); chmod -R g+rwX \(path); find \(path) -type d -exec chmod g+s {} +"
    )
  }

  /// The group's name, or its number if it has none.
  var name: String {
    Self.name(String(group)) { buffer, size in
      var record = SystemGroup()
      var found: UnsafeMutablePointer<SystemGroup>?
      guard getgrgid_r(group, &record, buffer, size, &found) == 0, found != nil else { return nil }
      return record.gr_name
    }
  }

  private static func name(ofUser user: uid_t) -> String {
    name(String(user)) { buffer, size in
      var record = passwd()
      var found: UnsafeMutablePointer<passwd>?
      guard getpwuid_r(user, &record, buffer, size, &found) == 0, found != nil else { return nil }
      return record.pw_name
    }
  }

  /// Calls a function of the user database, and returns the name that it finds, or `number`.
  private static func name(
    _ number: String,
    _ find: (UnsafeMutablePointer<CChar>, Int) -> UnsafeMutablePointer<CChar>?
  ) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1 << 14) { buffer in
      guard let base = buffer.baseAddress, let found = find(base, buffer.count) else {
        return number
      }
      return String(cString: found)
    }
  }
}

/// Folders and files of a shared directory that other users of its group cannot use.
public struct ClosedEntries: Hashable, Sendable {
  /// Their names in their folder.
  public var names: [String]
  /// The group's name.
  public var group: String
  /// The names of the users to whom they belong.
  public var owners: Set<String>
  /// The commands with which the owners open them to the group.
  public var commands: String

  /// Creates the value for the named entries of a folder.
  public init(names: [String], group: String, owners: Set<String>, commands: String) {
    self.names = names
    self.group = group
    self.owners = owners
    self.commands = commands
  }

  /// What to do, a sentence for the user.
  public var remedy: Remedy {
    let who = owners.isEmpty ? "their owner" : owners.sorted().joined(separator: " and as ")
    return Remedy("Run this as \(who): \(commands)")
  }
}

extension FolderDirectory {
  /// See ``SharedDirectory/closedEntries(_:in:)``.
  public func closedEntries(
    _ names: [String], in folder: RelativePath
  ) throws -> ClosedEntries? {
    try perform(.list, folder) {
      guard !names.isEmpty, let group = try SharedGroup(root: try openRoot()) else { return nil }
      let opened = try openFolder(folder)
      var owners: Set<uid_t> = []
      let closed = try names.filter { name in
        do {
          let status = try systemStatus(of: name, in: opened)
          guard group.isClosed(status) else { return false }
          owners.insert(status.st_uid)
          return true
        } catch let failure as SystemFailure where failure.number == ENOENT {
          // It was removed since its folder was listed.
          return false
        }
      }
      return closed.isEmpty ? nil : group.closed(closed, owners: owners, root: root)
    }
  }

  /// Returns what to do if a folder or file on a path cannot be written since another user has
  /// closed it to the group of the root; `nil` if that is not the reason.
  func groupRemedy(_ path: RelativePath) -> Remedy? {
    do {
      var folder = try openRoot()
      guard let group = try SharedGroup(root: folder) else { return nil }
      for name in path.components {
        let status = try systemStatus(of: name, in: folder)
        if status.st_uid != geteuid(), group.isClosed(status) {
          return group.closed([name], owners: [status.st_uid], root: root).remedy
        }
        folder = try OpenFile(in: folder, name: name, flags: O_RDONLY | O_DIRECTORY | O_NONBLOCK)
      }
    } catch {
      // The path ends here, or cannot be looked at: the usual remedy of the first error stays.
    }
    return nil
  }
}
