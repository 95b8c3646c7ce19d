import Foundation
import SyncModel
import Synchronization
import Testing

@testable import SyncDirectory

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite struct FolderDirectoryTests {
  private let folder: TemporaryFolder
  private let directory: FolderDirectory

  init() throws {
    folder = try TemporaryFolder()
    directory = FolderDirectory(root: folder.path)
  }

  @Test func aMissingRootIsAwayForEveryCall() throws {
    let missing = FolderDirectory(root: folder.path + "/missing")
    let file = try path("a/b")
    try folder.write([1], to: "local")
    let calls: [() throws -> Void] = [
      { try missing.check(for: .reading) }, { try missing.check(for: .writing) },
      { _ = try missing.list(.root) }, { _ = try missing.list(file) },
      { _ = try missing.read(file, limit: 9) },
      { try missing.download(file, to: folder.path + "/to", limit: 9) },
      { try missing.publish([1], at: file, by: Sample.alice) },
      { try missing.upload(localFile: folder.path + "/local", to: file, by: Sample.alice) },
      { try missing.remove(file) }, { try missing.removeLeftovers(of: Sample.alice) },
    ]
    for call in calls {
      let error = try expectError(.away, call)
      #expect(!error.isRetryable)
      #expect(error.path == missing.root)
      #expect(error.underlying?.number == ENOENT)
    }
    #expect(!FileManager.default.fileExists(atPath: missing.root))
  }

  @Test func aFileInPlaceOfTheRootIsNoDirectory() throws {
    try folder.write([1], to: "root")
    let directory = FolderDirectory(root: folder.path + "/root")
    try expectError(.notADirectory) { try directory.check(for: .reading) }
    try expectError(.notADirectory) { _ = try directory.list(.root) }
    try expectError(.notADirectory) {
      try directory.publish([1], at: try path("a"), by: Sample.alice)
    }
  }

  @Test func theRootItselfMayBeALink() throws {
    try folder.makeFolder("real")
    try folder.link("root", to: "real")
    let directory = FolderDirectory(root: folder.path + "/root/")
    try directory.publish([1], at: try path("a/b"), by: Sample.alice)
    #expect(FileManager.default.fileExists(atPath: folder.path + "/real/a/b"))
  }

  @Test func noLinkBelowTheRootIsFollowedAtAnyLevel() throws {
    let outside = try TemporaryFolder()
    try outside.makeFolder("b/c")
    try outside.write([9], to: "b/c/file")
    try outside.write([9], to: "b/file")
    try outside.write([9], to: "file")
    try folder.link("a", to: outside.path)
    try folder.makeFolder("d")
    try folder.link("d/b", to: outside.path + "/b")
    try folder.link("d/file", to: outside.path + "/file")
    for text in ["a/file", "a/b/file", "a/b/c/file", "d/b/file", "d/b/c/file"] {
      try expectError(.notADirectory) { _ = try directory.read(try path(text), limit: 9) }
      try expectError(.notADirectory) {
        try directory.publish([1], at: try path(text + ".new"), by: Sample.alice)
      }
      try expectError(.notADirectory) { try directory.remove(try path(text)) }
    }
    for text in ["a", "a/b", "d/b", "d/b/c"] {
      try expectError(.notADirectory) { _ = try directory.list(try path(text)) }
    }
    try expectError(.notRegularFile) { _ = try directory.read(try path("d/file"), limit: 9) }
    try expectError(.notRegularFile) {
      try directory.download(try path("d/file"), to: folder.path + "/local", limit: 9)
    }
    try expectError(.exists) {
      try directory.publish([9], at: try path("d/file"), by: Sample.alice)
    }
    #expect(try directory.list(try path("d")).allSatisfy { $0.kind == .other })
    try directory.remove(try path("d/file"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: outside.path + "/file")) == Data([9]))
    #expect(try FileManager.default.subpathsOfDirectory(atPath: outside.path).count == 5)
  }

  @Test func aLinkInPlaceOfTheTemporaryFolderIsNotWrittenThrough() throws {
    let outside = try TemporaryFolder()
    try outside.write([1], to: "precious")
    try folder.link("Temporary", to: outside.path)
    try expectError(.notADirectory) {
      try directory.publish([1], at: try path("a"), by: Sample.alice)
    }
    try folder.makeFolder("real")
    try FileManager.default.removeItem(atPath: folder.path + "/Temporary")
    try folder.makeFolder("Temporary")
    try folder.link("Temporary/\(Sample.alice)", to: outside.path)
    try expectError(.notADirectory) { try directory.removeLeftovers(of: Sample.alice) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: outside.path) == ["precious"])
  }

  @Test func aNamedPipeIsNotWaitedFor() throws {
    #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
    try expectError(.notRegularFile) { _ = try directory.read(try path("pipe"), limit: 9) }
    #expect(try directory.list(.root).map(\.kind) == [.other])
  }

  @Test func namesThatAreNotUTF8AreListedAsForeign() throws {
    let bytes: [CChar] = (folder.path + "/1.").utf8CString.dropLast() + [-1, -2, 0]
    let descriptor = open(bytes, O_CREAT | O_WRONLY, 0o600)
    try #require(descriptor >= 0)
    close(descriptor)
    let listing = try directory.list(.root, as: ChangeFileName.self)
    #expect(listing.names.isEmpty)
    #expect(listing.foreign.count == 1)
  }

  @Test(.enabled(if: ReadOnlyFolder.isPossible, "needs chattr +i when run as root"))
  func aRootThatIsNotWritableSaysSoAndIsNotRetried() throws {
    try directory.publish([5], at: try path("file"), by: Sample.alice)
    try ReadOnlyFolder.with(folder.path) {
      try directory.check(for: .reading)
      #expect(try directory.read(try path("file"), limit: 9) == [5])
      let check = try expectError(.notWritable) { try directory.check(for: .writing) }
      #expect(!check.isRetryable)
      let publish = try expectError(.notWritable) {
        try directory.publish([1], at: try path("new/file"), by: Sample.alice)
      }
      #expect(!publish.isRetryable)
      #expect(publish.path == "\(folder.path)/new/file")
      try expectError(.notWritable) { try directory.remove(try path("file")) }
    }
  }

  @Test func aFolderOnSystemFilesIsNotWritable() throws {
    #if os(Linux)
      // Refused to everyone, root included, with EPERM, EROFS or EACCES.
      let directory = FolderDirectory(root: "/sys")
      try expectError(.notWritable) {
        try directory.publish([1], at: try path("docsync/file"), by: Sample.alice)
      }
    #endif
  }

  @Test func aFileThatGivesFewerBytesThanAnnouncedIsRetryable() throws {
    #if os(Linux)
      // Files there announce a page and give a few bytes.
      let directory = FolderDirectory(root: "/sys/kernel")
      let error = try expectError(.transient) {
        _ = try directory.read(try path("uevent_seqnum"), limit: 1 << 20)
      }
      #expect(error.isRetryable)
      // And files there announce nothing and give more.
      try expectError(.transient) {
        _ = try FolderDirectory(root: "/proc").read(try path("version"), limit: 1 << 20)
      }
    #endif
  }

  @Test func leftoversOfAKilledPublicationAreRemovedAndFoldersKept() throws {
    let unfinished = DirectoryLayout.temporary(of: Sample.alice).description
    try folder.makeFolder(unfinished + "/folder")
    try folder.write([1], to: unfinished + "/half")
    try folder.link(unfinished + "/link", to: "/etc/passwd")
    try directory.removeLeftovers(of: Sample.alice)
    #expect(try directory.list(try path(unfinished)).map(\.name) == ["folder"])
  }

  @Test func tenThousandNamesAreListedWithoutAskingForEach() throws {
    try folder.makeFolder("many")
    for number in 0..<10_000 {
      let descriptor = open("\(folder.path)/many/\(number)", O_CREAT | O_WRONLY, 0o600)
      try #require(descriptor >= 0)
      close(descriptor)
    }
    let many = try path("many")
    let calls = Mutex<[String]>([])
    let observer = SystemFailure.Observer { call in calls.withLock { $0.append(call) } }
    try SystemFailure.$observer.withValue(observer) {
      let entries = try directory.list(many)
      #expect(entries.count == 10_000 && entries.allSatisfy { $0.kind == .file })
    }
    // The root, the folder, and its copy for the stream; asking for each name would take minutes
    // on some mounts.
    #expect(calls.withLock { $0 } == ["open", "openat", "dup"])
  }

  @Test(arguments: [
    (ENOENT, false, DirectoryError.Code.notFound), (ENOTDIR, false, .notADirectory),
    (EACCES, false, .notReadable), (EACCES, true, .notWritable), (EROFS, true, .notWritable),
    (ENOSPC, true, .noSpace), (EDQUOT, true, .noSpace), (ESTALE, false, .transient),
    (EFAULT, false, .transient), (EINTR, false, .transient), (EBUSY, true, .transient),
    (ENOTCONN, false, .away), (EHOSTDOWN, false, .away), (EIO, false, .io),
  ])
  func systemErrorsAreSaidInOurWords(number: Int32, writes: Bool, code: DirectoryError.Code) throws
  {
    let failure = SystemFailure(number: number, call: "fstat")
    let error = try expectError(code) {
      try directory.perform(.read, try path("file"), writes: writes) { throw failure }
    }
    #expect(error.underlying?.number == number)
    #expect(error.isRetryable == [.transient, .notFound].contains(code))
    #expect(error.description.contains(folder.path + "/file"))
    #expect(error.description.hasSuffix(error.remedy.description))
  }

  @Test(arguments: [ENOENT, ENOTCONN, EIO, ESTALE, ETIMEDOUT, ENODEV])
  func whateverAilsTheRootMeansThatItIsAway(number: Int32) throws {
    #expect(FolderDirectory.code(ofRoot: number) == .away)
  }

  @Test func aRefusedRenameMayPass() throws {
    for number in [EACCES, EPERM, EBUSY] {
      let failure = SystemFailure(number: number, call: "rename")
      let error = try #require(throws: DirectoryError.self) {
        try directory.perform(.publish, try path("file")) { throw failure }
      }
      #expect(error.isRetryable)
    }
  }
}
