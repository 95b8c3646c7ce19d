import Foundation
import SyncModel
import Testing

@testable import SyncDirectory

/// What is noticed of changes in a folder.
@Suite(.timeLimit(.minutes(5))) struct FolderWatchTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path }

  init() throws { folder = try TemporaryFolder() }

  private func write(_ name: String, in folder: String? = nil) throws {
    try Data("x".utf8).write(to: URL(fileURLWithPath: (folder ?? path) + "/" + name))
  }

  private func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(
      atPath: path + "/" + name, withIntermediateDirectories: true)
  }

  @Test func fileKindsAreFoundInMountinfo() {
    let mounts = """
      21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
      40 21 0:35 / /mnt/my\\040share rw shared:2 - cifs //server/share rw
      41 21 0:36 / /mnt rw - tmpfs tmpfs rw
      42 41 0:37 / /mnt/box rw - fuse.sshfs box: rw
      43 41 0:38 / /mnt/over rw - tmpfs tmpfs rw
      44 41 0:39 / /mnt/over rw - nfs4 server:/ rw
      """
    func type(_ path: String) -> String? { FileSystemKind.type(of: path, mounts: mounts) }
    #expect(type("/home/ada") == "ext4")
    #expect(type("/mnt/my share/sync") == "cifs")
    #expect(type("/mnt/my sharex") == "tmpfs")
    #expect(type("/mnt/box") == "fuse.sshfs")
    // Of two mounts at one place, the later one counts.
    #expect(type("/mnt/over/a") == "nfs4")
    #expect(FileSystemKind.type(of: "/home", mounts: "") == nil)
    for remote in ["cifs", "fuse.sshfs", "nfs4", "9p", "fuse"] {
      #expect(FileSystemKind.isRemoteType(remote))
    }
    for local in ["ext4", "tmpfs", "btrfs", "fuseblk", "overlay"] {
      #expect(!FileSystemKind.isRemoteType(local))
    }
  }

  #if os(Linux)
    /// The changes of the directory, which must be reported here.
    private func changes() throws -> AsyncStream<Void>.Iterator {
      try #require(FolderDirectory(root: path).changes()).makeAsyncIterator()
    }

    @Test func aNewFileIsNoticed() async throws {
      var changes = try changes()
      try write("a")
      #expect(await changes.next() != nil)
    }

    @Test func whatIsInNewFoldersIsNoticed() async throws {
      var changes = try changes()
      for depth in 1...4 {
        try makeFolder((1...depth).map { "f\($0)" }.joined(separator: "/"))
        #expect(await changes.next() != nil)
      }
      // The folder came with content, which may have come before it was watched.
      try makeFolder("g/h")
      #expect(await changes.next() != nil)
      // Everything that was reported so far is taken.
      try await Task.sleep(for: .milliseconds(50))
      try write("a", in: path + "/f1/f2/f3/f4")
      #expect(await changes.next() != nil)
      try write("b", in: path + "/g/h")
      #expect(await changes.next() != nil)
    }

    @Test func unfinishedFilesAreNotNoticed() async throws {
      try makeFolder("Temporary")
      var changes = try changes()
      try write("a", in: path + "/Temporary")
      try write(".hidden")
      try write("a")
      #expect(await changes.next() != nil)
      try write("b", in: path + "/Temporary")
      // Nothing more comes: the end is next.
      try FileManager.default.removeItem(atPath: path)
      var count = 0
      while await changes.next() != nil { count += 1 }
      // The removal of “a” and of the folders may be told together or one by one.
      #expect(count <= 4)
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    @Test(arguments: [true, false])
    func theEndOfTheFolderEndsTheChanges(isMoved: Bool) async throws {
      var changes = try changes()
      if isMoved {
        try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
      } else {
        try FileManager.default.removeItem(atPath: path)
      }
      while await changes.next() != nil {}
      if isMoved {
        try FileManager.default.moveItem(atPath: path + ".moved", toPath: path)
      } else {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      }
    }

    @Test func linksAreNotFollowed() async throws {
      let other = try TemporaryFolder()
      try FileManager.default.createSymbolicLink(
        atPath: path + "/link", withDestinationPath: other.path)
      let stream = try #require(FolderDirectory(root: path).changes())
      let counting = Task {
        var count = 0
        for await _ in stream { count += 1 }
        return count
      }
      try write("a", in: other.path)
      try await Task.sleep(for: .milliseconds(100))
      counting.cancel()
      #expect(await counting.value == 0)
    }

    @Test func aFolderThatIsNotThereReportsNothing() {
      #expect(FolderDirectory(root: path + "/none").changes() == nil)
      #expect(FolderDirectory(root: "/proc/self/mountinfo").changes() == nil)
    }

    @Test func aDatabaseIsItsFileAndThoseBesideIt() async throws {
      try write("notes.db")
      var changes = try #require(FolderWatch.changes(ofDatabaseAt: path + "/notes.db"))
        .makeAsyncIterator()
      for suffix in ["", "-wal", "-journal"] {
        try write("notes.db" + suffix)
        #expect(await changes.next() != nil)
        try await Task.sleep(for: .milliseconds(20))
        // The file was created, written and closed: that may be several reports.
        try write("other.db")
      }
    }
  #endif
}
