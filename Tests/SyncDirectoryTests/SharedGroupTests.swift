import Foundation
import SyncDirectory
import SyncModel
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Two users of one server share a folder through its group: both must be able to write to what the
/// other one creates. A umask and a user belong to a whole process: each case has one of its own.
@Suite struct SharedGroupTests {
  private static let file = "Documents/x/y.bin"

  @Test(arguments: [0o022, 0o077] as [mode_t])
  func whatIsCreatedTakesOverTheGroupOfTheRoot(mask: mode_t) async {
    await #expect(processExitsWith: .success) { [mask] in
      umask(mask)
      let folder = try TemporaryFolder()
      try #require(chmod(folder.path, 0o2770) == 0)
      let directory = FolderDirectory(root: folder.path)
      try directory.publish([1, 2], at: try path(Self.file), by: Sample.alice)
      for name in ["Documents", "Documents/x", "Temporary", "Temporary/\(Sample.alice)"] {
        #expect(
          try mode(of: folder.path + "/" + name) == 0o2770 | (0o777 & ~mask & 0o005), "\(name)")
      }
      #expect(try mode(of: folder.path + "/" + Self.file) & 0o660 == 0o660)
      for (parent, names) in [
        (RelativePath.root, ["Documents", "Temporary"]),
        (try path("Documents/x"), ["y.bin", "absent"]),
      ] {
        #expect(try directory.closedEntries(names, in: parent) == nil)
      }
    }
  }

  /// A user who keeps a folder from the group means it.
  @Test func aRootThatIsClosedToItsGroupChangesNothing() async {
    await #expect(processExitsWith: .success) {
      umask(0o077)
      let folder = try TemporaryFolder()
      try #require(chmod(folder.path, 0o750) == 0)
      let directory = FolderDirectory(root: folder.path)
      try directory.publish([1, 2], at: try path(Self.file), by: Sample.alice)
      #expect(try mode(of: folder.path + "/Documents") == 0o700)
      #expect(try mode(of: folder.path + "/" + Self.file) == 0o600)
      #expect(try directory.closedEntries(["Documents"], in: .root) == nil)
    }
  }

  /// Folders that an earlier build has closed are opened when their user publishes below them.
  @Test func closedFoldersAreFoundAndOpened() throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("Documents/x")
    try #require(chmod(folder.path, 0o2770) == 0)
    try #require(chmod(folder.path + "/Documents", 0o755) == 0)
    let directory = FolderDirectory(root: folder.path)
    let closed = try #require(try directory.closedEntries(["Documents", "absent"], in: .root))
    #expect(closed.names == ["Documents"])
    #expect(closed.remedy.contains("chmod -R g+rwX '\(folder.path)'"))
    try directory.publish([1], at: try path(Self.file), by: Sample.alice)
    #expect(try directory.closedEntries(["Documents"], in: .root) == nil)
    #expect(try mode(of: folder.path + "/Documents") == 0o2775)
  }

  @Test func aFileThatTheGroupCannotReadIsFound() throws {
    let folder = try TemporaryFolder()
    try #require(chmod(folder.path, 0o770) == 0)
    let directory = FolderDirectory(root: folder.path)
    for (name, mode) in [("a", 0o600), ("b", 0o640), ("c", 0o660)] as [(String, mode_t)] {
      try folder.write([1], to: name)
      try #require(chmod(folder.path + "/" + name, mode) == 0)
    }
    let closed = try directory.closedEntries(["a", "b", "c"], in: .root)
    #expect(closed?.names == ["a"])
  }

  /// The second user learns who must do what.
  @Test(.enabled(if: geteuid() == 0, "only root can become two users"))
  func theSecondUserLearnsWhoMustDoWhat() async {
    await #expect(processExitsWith: .success) {
      umask(0o022)
      let folder = try TemporaryFolder()
      try folder.makeFolder("Documents")
      try #require(chown(folder.path, 4_000_001, 4_000_100) == 0)
      try #require(chmod(folder.path, 0o2770) == 0)
      try #require(chown(folder.path + "/Documents", 4_000_001, 4_000_100) == 0)
      let directory = FolderDirectory(root: folder.path)
      try #require(setegid(4_000_100) == 0 && seteuid(4_000_002) == 0)
      let error = try expectError(.notWritable) {
        try directory.publish([1], at: try path(Self.file), by: Sample.bob)
      }
      #expect(error.remedy.contains("Run this as 4000001: chgrp -R 4000100 '\(folder.path)'"))
      // The first user publishes, and the folder is open.
      try #require(seteuid(0) == 0 && seteuid(4_000_001) == 0)
      try directory.publish([1], at: try path("Documents/a.bin"), by: Sample.alice)
      try #require(seteuid(0) == 0 && seteuid(4_000_002) == 0)
      try directory.publish([1], at: try path(Self.file), by: Sample.bob)
      try #require(seteuid(0) == 0 && setegid(0) == 0)
    }
  }
}

/// The permission bits of a file or folder.
private func mode(of path: String) throws -> mode_t {
  var status = stat()
  try #require(stat(path, &status) == 0)
  return status.st_mode & 0o7777
}
