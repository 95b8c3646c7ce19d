import SyncDirectory
import SyncModel

extension DirectoryConformance {
  static let listing: [Check] = [
    Check("an empty directory is there and lists nothing") { directory in
      try directory.check(for: .reading)
      try directory.check(for: .writing)
      try require(try directory.list(.root).isEmpty, "not empty")
    },
    Check("looking whether the directory is there creates nothing") { directory in
      try directory.check(for: .writing)
      try require(try directory.list(.root).isEmpty, "something was created")
    },
    Check("files and folders are told apart, or not told") { directory in
      try directory.publish([1], at: try path("folder/file"), by: client)
      try directory.publish([1], at: try path("file"), by: client)
      let entries = try directory.list(.root)
      let folder = entries.first { $0.name == "folder" }
      let file = entries.first { $0.name == "file" }
      try require(folder?.mayBeFolder == true && folder?.kind != .file, "\(entries)")
      try require(file?.mayBeFile == true && file?.kind != .folder, "\(entries)")
    },
    Check("a folder that is missing is told apart from an empty one") { directory in
      let error = try requireError(.notFound) { _ = try directory.list(try path("missing")) }
      try require(!error.isRetryable, "a missing folder is an answer")
      try requireError(.notFound) { _ = try directory.list(try path("missing/below")) }
    },
    Check("a file cannot be listed") { directory in
      try directory.publish([1], at: try path("file"), by: client)
      try requireError(.notADirectory) { _ = try directory.list(try path("file")) }
      try requireError(.notADirectory) { _ = try directory.list(try path("file/below")) }
    },
    Check("hundreds of names are listed once each") { directory in
      let folder = try path("folder")
      var expected: [String] = []
      for number in 1...300 {
        expected.append("\(number).txt")
        try directory.publish([], at: try path("folder/\(number).txt"), by: client)
      }
      try require(try names(directory, folder) == expected.sorted(), "names missing or doubled")
    },
  ]

  static let reading: [Check] = [
    Check("a file that is missing is worth another try") { directory in
      for text in ["missing", "missing/below"] {
        let error = try requireError(.notFound) {
          _ = try directory.read(try path(text), limit: 9)
        }
        try require(error.isRetryable, "the file may have been listed a moment ago")
      }
    },
    Check("a folder cannot be read") { directory in
      try directory.publish([1], at: try path("folder/file"), by: client)
      try requireError(.notRegularFile) { _ = try directory.read(try path("folder"), limit: 9) }
      try requireError(.notRegularFile) { _ = try directory.read(.root, limit: 9) }
    },
    Check("a file cannot be read as a folder") { directory in
      try directory.publish([1], at: try path("file"), by: client)
      try requireError(.notADirectory) { _ = try directory.read(try path("file/below"), limit: 9) }
    },
    Check("the limit is the greatest size that is read") { directory in
      try directory.publish(bytes(100), at: try path("file"), by: client)
      try require(try directory.read(try path("file"), limit: 100).count == 100, "too short")
      let error = try requireError(.tooLarge) {
        _ = try directory.read(try path("file"), limit: 99)
      }
      try require(!error.isRetryable, "a size does not pass")
    },
    Check("a file's length is told without a limit") { directory in
      try directory.publish(bytes(100), at: try path("folder/file"), by: client)
      try require(try directory.byteCount(of: try path("folder/file")) == 100, "another length")
      try requireError(.notFound) { _ = try directory.byteCount(of: try path("missing")) }
      try requireError(.notRegularFile) { _ = try directory.byteCount(of: try path("folder")) }
    },
    Check("errors name the path") { directory in
      let error = try requireError(.notFound) {
        _ = try directory.read(try path("some/file"), limit: 9)
      }
      try require(error.path.contains("some/file"), error.path)
      try require(!error.remedy.isEmpty, "no remedy")
    },
  ]

  static let removal: [Check] = [
    Check("a removed file is gone") { directory in
      try directory.publish([1], at: try path("folder/file"), by: client)
      try directory.remove(try path("folder/file"))
      try requireError(.notFound) { _ = try directory.read(try path("folder/file"), limit: 9) }
      try directory.publish([2], at: try path("folder/file"), by: client)
      try require(try directory.read(try path("folder/file"), limit: 9) == [2], "other bytes")
    },
    Check("removing what is not there succeeds") { directory in
      try directory.remove(try path("missing"))
      try directory.remove(try path("missing/below"))
    },
    Check("only empty folders are removed") { directory in
      try directory.publish([1], at: try path("folder/file"), by: client)
      try requireError(.notEmpty) { try directory.remove(try path("folder")) }
      try require(try directory.read(try path("folder/file"), limit: 9) == [1], "other bytes")
      try directory.remove(try path("folder/file"))
      try directory.remove(try path("folder"))
      try requireError(.notFound) { _ = try directory.list(try path("folder")) }
    },
    Check("the root is never removed") { directory in
      try requireError(.invalidPath) { try directory.remove(.root) }
      try directory.check(for: .writing)
    },
    Check("a client's leftovers are removed, and those of others kept") { directory in
      for owner in [client, otherClient] {
        let folder = DirectoryLayout.temporary(of: owner)
        try directory.publish([1], at: folder / "leftover", by: owner)
      }
      try directory.removeLeftovers(of: client)
      try requireNoLeftovers(directory)
      try require(
        try names(directory, DirectoryLayout.temporary(of: otherClient)) == ["leftover"],
        "another client's file is gone")
    },
    Check("removing leftovers where there are none succeeds") { directory in
      try directory.removeLeftovers(of: client)
    },
  ]
}
