import Foundation
import SyncDirectory
import SyncModel

extension DirectoryConformance {
  static let publishing: [Check] = [
    Check("a published file is listed and read") { directory in
      let path = try path("Documents/one/file.txt")
      try directory.publish([1, 2, 3], at: path, by: client)
      try require(try directory.read(path, limit: 3) == [1, 2, 3], "other bytes")
      try require(
        try names(directory, try Self.path("Documents/one")) == ["file.txt"], "not listed")
    },
    Check("a file in the root can be published") { directory in
      try directory.publish([7], at: DirectoryLayout.readme, by: client)
      try require(try directory.read(DirectoryLayout.readme, limit: 9) == [7], "other bytes")
    },
    Check("an empty file can be published and read") { directory in
      try directory.publish([], at: try path("empty"), by: client)
      try require(try directory.read(try path("empty"), limit: 0).isEmpty, "not empty")
    },
    Check("content of more than a mebibyte comes back as it was") { directory in
      let content = bytes((1 << 20) + 4_097)
      try directory.publish(content, at: try path("large"), by: client)
      try require(try directory.read(try path("large"), limit: 1 << 21) == content, "other bytes")
    },
    Check("publishing the same bytes again succeeds") { directory in
      let path = try path("folder/file")
      try directory.publish([1], at: path, by: client)
      try directory.publish([1], at: path, by: client)
      try directory.publish([1], at: path, by: otherClient)
      try require(try directory.read(path, limit: 9) == [1], "other bytes")
    },
    Check("publishing other bytes under a taken name fails and changes nothing") { directory in
      let path = try path("folder/file")
      try directory.publish([1], at: path, by: client)
      for other: [UInt8] in [[2], [1, 1], []] {
        let error = try requireError(.exists) {
          try directory.publish(other, at: path, by: client)
        }
        try require(!error.isRetryable, "a taken name does not pass")
      }
      try require(try directory.read(path, limit: 9) == [1], "the file was changed")
      try requireNoLeftovers(directory)
    },
    Check("publishing over a folder fails") { directory in
      try directory.publish([1], at: try path("folder/file"), by: client)
      try requireError(.exists) {
        try directory.publish([1], at: try path("folder"), by: client)
      }
    },
    Check("publishing below a file fails") { directory in
      try directory.publish([1], at: try path("file"), by: client)
      try requireError(.notADirectory) {
        try directory.publish([1], at: try path("file/below"), by: client)
      }
    },
    Check("nothing unfinished is left by publishing") { directory in
      try directory.publish([1], at: try path("file"), by: client)
      try requireNoLeftovers(directory)
    },
    Check("several threads may publish at once") { directory in
      let errors = Locked<[String]>([])
      DispatchQueue.concurrentPerform(iterations: 16) { number in
        do {
          let own = try path("folder-\(number % 4)/file-\(number)")
          try directory.publish(bytes(1_000, seed: UInt64(number)), at: own, by: client)
          try directory.publish([1], at: try path("shared/same"), by: client)
        } catch {
          errors.withLock { $0.append("\(error)") }
        }
      }
      try require(errors.withLock { $0.isEmpty }, "\(errors.withLock { $0 })")
      for number in 0..<16 {
        let content = try directory.read(
          try path("folder-\(number % 4)/file-\(number)"), limit: 1_000)
        try require(content == bytes(1_000, seed: UInt64(number)), "other bytes")
      }
    },
  ]

  static let paths: [Check] = [
    Check("paths that do not survive everywhere are refused") { directory in
      let long = String(repeating: "a", count: 65)
      let deep = Array(repeating: String(repeating: "b", count: 60), count: 3)
      for text in ["a b", "é", "a:b", ".hidden", "dot.", long, deep.joined(separator: "/"), "a_b"] {
        try requireError(.invalidPath) {
          try directory.publish([1], at: try path(text), by: client)
        }
      }
      try requireError(.invalidPath) { try directory.publish([1], at: .root, by: client) }
      try require(try directory.list(.root).isEmpty, "something was created")
    },
    Check("the longest paths of the layout can be published") { directory in
      let generation = DirectoryLayout.Document(DocumentName(bits: client.bits))
        .generation(IntegrityKey(bits: otherClient.bits))
      let greatest: UInt64 = 999_999_999_999_999
      let hash = HashFragment(ContentHash(of: [1]))
      let segment = SegmentName(numbers: greatest - 1...greatest, hash: hash)
      let marker = MarkerName(
        client: client, changeHead: 9_999_999_999, commandHead: 99_999, revision: 999_999_999,
        hash: hash)
      for path in [
        generation.path(of: segment, by: client), generation.path(of: marker),
      ] {
        try directory.publish([1], at: path, by: client)
        try require(try directory.read(path, limit: 1) == [1], "other bytes")
      }
    },
  ]
}
