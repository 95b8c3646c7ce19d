import Foundation
import SyncDirectory
import SyncModel

extension DirectoryConformance {
  static let transfers: [Check] = [
    Check("an uploaded file is downloaded as it was") { directory in
      try withScratch { scratch in
        let content = bytes((3 << 20) + 17)
        try write(content, to: scratch + "/from")
        try directory.upload(localFile: scratch + "/from", to: try path("f/store"), by: client)
        try directory.download(try path("f/store"), to: scratch + "/to", limit: content.count)
        try require(try readLocal(scratch + "/to") == content, "other bytes")
        try requireNoLeftovers(directory)
      }
    },
    Check("an empty file is uploaded and downloaded") { directory in
      try withScratch { scratch in
        try write([], to: scratch + "/from")
        try directory.upload(localFile: scratch + "/from", to: try path("store"), by: client)
        try directory.download(try path("store"), to: scratch + "/to", limit: 0)
        try require(try readLocal(scratch + "/to").isEmpty, "not empty")
      }
    },
    Check("progress begins at nothing, never falls and ends at all") { directory in
      try withScratch { scratch in
        try write(bytes(5 << 20), to: scratch + "/from")
        for direction in ["up", "down"] {
          var steps: [Int] = []
          let note: TransferProgress = { done, total in
            try require(total == 5 << 20, "total \(total)")
            steps.append(done)
          }
          if direction == "up" {
            try directory.upload(
              localFile: scratch + "/from", to: try path("store"), by: client, progress: note)
          } else {
            try directory.download(
              try path("store"), to: scratch + "/to", limit: 5 << 20, progress: note)
          }
          try require(
            steps.first == 0 && steps.last == 5 << 20 && steps == steps.sorted(),
            "\(direction): \(steps)")
        }
      }
    },
    Check("a cancelled upload publishes nothing and leaves nothing") { directory in
      try withScratch { scratch in
        try write(bytes(3 << 20), to: scratch + "/from")
        for limit in [0, 1, 3 << 20] {
          try requireCancelled {
            try directory.upload(
              localFile: scratch + "/from", to: try path("f/store"), by: client,
              progress: { done, _ in if done >= limit { throw Cancelled() } })
          }
        }
        try requireError(.notFound) { _ = try directory.read(try path("f/store"), limit: 9) }
        try requireNoLeftovers(directory)
      }
    },
    Check("a cancelled download leaves no file") { directory in
      try withScratch { scratch in
        try directory.publish(bytes(3 << 20), at: try path("store"), by: client)
        for limit in [0, 1, 3 << 20] {
          try requireCancelled {
            try directory.download(
              try path("store"), to: scratch + "/to", limit: 3 << 20,
              progress: { done, _ in if done >= limit { throw Cancelled() } })
          }
          try require(!FileManager.default.fileExists(atPath: scratch + "/to"), "a file is left")
        }
      }
    },
    Check("a download that fails leaves no file") { directory in
      try withScratch { scratch in
        try directory.publish(bytes(100), at: try path("store"), by: client)
        try requireError(.tooLarge) {
          try directory.download(try path("store"), to: scratch + "/to", limit: 99)
        }
        let error = try requireError(.notFound) {
          try directory.download(try path("missing"), to: scratch + "/to", limit: 99)
        }
        try require(error.isRetryable, "the file may have been listed a moment ago")
        try require(!FileManager.default.fileExists(atPath: scratch + "/to"), "a file is left")
      }
    },
    Check("a download never overwrites a local file") { directory in
      try withScratch { scratch in
        try directory.publish([1], at: try path("store"), by: client)
        try write([9], to: scratch + "/to")
        try requireError(.localFile) {
          try directory.download(try path("store"), to: scratch + "/to", limit: 99)
        }
        try require(try readLocal(scratch + "/to") == [9], "the local file was changed")
      }
    },
    Check("uploading the same bytes again succeeds, other bytes fail") { directory in
      try withScratch { scratch in
        let content = bytes((1 << 20) + 5)
        try write(content, to: scratch + "/from")
        try directory.upload(localFile: scratch + "/from", to: try path("store"), by: client)
        try directory.upload(localFile: scratch + "/from", to: try path("store"), by: client)
        var other = content
        other[other.count - 1] ^= 1
        try write(other, to: scratch + "/other")
        try requireError(.exists) {
          try directory.upload(localFile: scratch + "/other", to: try path("store"), by: client)
        }
        try require(
          try directory.read(try path("store"), limit: 1 << 21) == content, "the file was changed")
      }
    },
    Check("a name that is taken during an upload is left as it is") { directory in
      try withScratch { scratch in
        try write(bytes(2 << 20), to: scratch + "/from")
        try requireError(.exists) {
          try directory.upload(
            localFile: scratch + "/from", to: try path("f/store"), by: client,
            progress: { done, total in
              guard done == total else { return }
              try directory.publish([9], at: try path("f/store"), by: otherClient)
            })
        }
        try require(try directory.read(try path("f/store"), limit: 9) == [9], "was changed")
        try requireNoLeftovers(directory)
      }
    },
    Check("a local file that is missing is no fault of the directory") { directory in
      try requireError(.localFile) {
        try directory.upload(
          localFile: "/nonexistent/local/file", to: try path("store"), by: client)
      }
    },
  ]

  private struct Cancelled: Error {}

  private static func requireCancelled(_ body: () throws -> Void) throws {
    do {
      try body()
    } catch is Cancelled {
      return
    }
    throw Failure(check: "cancellation", reason: "the call succeeded though it was cancelled")
  }

  /// Passes `body` a new folder for local files, and removes the folder afterwards.
  private static func withScratch(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("conformance-\(ClientIdentifier.random())").path
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true)
    do {
      try body(folder)
    } catch {
      try FileManager.default.removeItem(atPath: folder)
      throw error
    }
    try FileManager.default.removeItem(atPath: folder)
  }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  private static func readLocal(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: path)))
  }
}
