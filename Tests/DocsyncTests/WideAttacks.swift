import Foundation
import SyncDirectory
import SyncModel

@testable import DocumentSync

/// What is put into a directory in numbers: entries of markers, JSON, names, and files of which
/// only the length is great.
extension HostileDirectoryTests {
  static let wideAttacks = [
    Attack(testDescription: "markers with many entries") { forger, _ in
      for _ in 0..<3 {
        let vector = vector(of: 6_000)
        // What it has published is looked for, and so its marker is read.
        try forger.announce(.random(), 1) {
          $0.applied = vector
          $0.commandsApplied = vector
        }
      }
      return []
    },
    Attack(testDescription: "markers that call many retired", waits: false) { forger, _ in
      for _ in 0..<6 {
        try forger.announce(.random()) { marker in
          marker.retired = (0..<8_000).map { _ in
            RecentSyncFile.Retired(
              client: .random(), cut: 1, lowestKept: 1 << 40, lowestKeptCommand: 1 << 40)
          }
        }
      }
      // Of each that is damaged it is asked who is gone.
      let client = ClientIdentifier.random()
      return try (1...50 as ClosedRange<UInt64>).map { number in
        let name = CommandName(number: number, hash: HashFragment(ContentHash(of: [])))
        let path = forger.layout.path(of: name, by: client)
        try forger.write([1, 2, 3], at: path)
        return path
      }
    },
    Attack(testDescription: "a marker that waits for much, and lists much", waits: false) {
      forger, _ in
      let hash = ContentHash(of: [])
      try forger.announce(.random()) { marker in
        marker.revision = MarkerName.revision(after: 0, saysWaiting: true)
        marker.waiting = (0..<8_000).map {
          SyncReport.Wait(
            client: .random(), number: UInt64($0) + 1, reason: .notArrived, message: "",
            path: nil)
        }
        marker.segments = (0..<8_000).map {
          RecentSyncFile.Segment(
            client: .random(), first: UInt64($0) + 1, last: VersionVector.greatestNumber,
            hash: hash)
        }
        marker.members = (0..<8_000).map { _ in .random() }
        marker.wholeStores = (0..<8_000).map {
          RecentSyncFile.WholeStore(
            client: .random(), number: UInt64($0), hash: hash, vector: vector(of: 1),
            commands: VersionVector(), byteCount: 1)
        }
      }
      return []
    },
    Attack(testDescription: "JSON that says nothing", waits: true) { forger, _ in
      var paths: [RelativePath] = []
      for text in hostileTexts {
        let client = ClientIdentifier.random()
        paths.append(try forger.writeMarker(try forger.json(text, .recentSync), of: client))
        let command = try forger.json(text, .syncCommand)
        let name = CommandName(number: 1, hash: HashFragment(ContentHash(of: command)))
        let path = forger.layout.path(of: name, by: client)
        try forger.write(command, at: path)
        try forger.announce(client, commandHead: 1) { $0.revision = 2 }
        paths.append(path)
        let device = DirectoryLayout.path(of: ClientDeviceName(client: client, revision: 1))
        try forger.write(try forger.json(text, .clientDevice), at: device)
        paths.append(device)
      }
      return paths
    },
    Attack(testDescription: "files that claim 300 MB") { forger, _ in
      let client = ClientIdentifier.random()
      let hash = HashFragment(ContentHash(of: [1]))
      try forger.announce(client, 2, commandHead: 1)
      let paths = [
        forger.layout.path(of: ChangeSetName(number: 1, hash: hash), by: client),
        forger.layout.path(of: SegmentName(numbers: 1...2, hash: hash), by: client),
        forger.layout.path(of: CommandName(number: 1, hash: hash), by: client),
        forger.layout.path(of: WholeStoreName(number: 1, hash: hash), by: client),
        forger.layout.path(
          of: MarkerName(
            client: .random(), changeHead: 1, commandHead: 1, revision: 1, hash: hash)),
        DirectoryLayout.path(of: ClientDeviceName(client: client, revision: 1)),
      ]
      for path in paths { try forger.writeZeros(300 << 20, at: path) }
      return paths
    },
    Attack(testDescription: "many names") { forger, _ in
      let hash = HashFragment(ContentHash(of: [1]))
      let client = ClientIdentifier.random()
      for number in 1...2_000 as ClosedRange<UInt64> {
        let other = ClientIdentifier.random()
        let layout = forger.layout
        for path in [
          layout.path(
            of: MarkerName(
              client: other, changeHead: 1, commandHead: 0, revision: number, hash: hash)),
          layout.path(of: ChangeSetName(number: number, hash: hash), by: client),
          layout.path(of: CommandName(number: number, hash: hash), by: client),
          layout.path(of: WholeStoreName(number: number, hash: hash), by: client),
          DirectoryLayout.path(of: ClientDeviceName(client: other, revision: 1)),
        ] { try forger.write([], at: path) }
      }
      return []
    },
  ]

  private static func vector(of count: Int) -> VersionVector {
    let hash = ContentHash(of: [])
    return VersionVector(
      Dictionary(
        uniqueKeysWithValues: (0..<count).map { _ in
          (.random(), VersionVector.Entry(number: 1, hash: hash))
        }))
  }

  /// Nearly as long as the body of a file with JSON may be.
  static let hostileTexts: [String] = {
    let length = (4 << 20) - 64
    func many(_ part: String, _ begin: String, _ end: String) -> String {
      begin + String(repeating: part, count: length / part.utf8.count) + end
    }
    let keys = (0..<(length / 12)).map { "\"\(1_000_000 + $0)\":" }
    return [
      many("[", "", ""),
      many("0,", "[", "0]"),
      many("[],", "{\"members\":[", "[]]}"),
      many("a", "{\"client\":\"", "\"}"),
      many("\\u0000", "{\"client\":\"", "\"}"),
      many("9", "{\"revision\":", "}"),
      "{" + keys.joined(separator: "0,") + "0}",
      many("\"a\":0,", "{", "\"a\":0}"),
    ]
  }()
}
