import Foundation
import SyncModel
import Testing

@testable import SyncSecurity

/// Whole stores: sealed and opened part by part.
@Suite(.serialized) struct SealedStreamTests {
  /// The greatest memory that the process has had, in bytes.
  private static func greatestMemory() -> Int {
    var usage = rusage()
    #if canImport(Darwin)
      getrusage(RUSAGE_SELF, &usage)
      return usage.ru_maxrss
    #else
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
      return usage.ru_maxrss * 1024
    #endif
  }

  private struct Store {
    var world: TestWorld
    let owner: TestDevice
    let place: SealedPlace
    let path = NSTemporaryDirectory() + "docsync-test-\(getpid())-\(UUID().uuidString).store"

    init() throws {
      world = try TestWorld(seed: 41)
      var owner = try world.owner()
      try world.makeEpoch(by: &owner)
      self.owner = owner
      place = world.place(1, of: owner.client, type: .wholeStore)
    }

    /// Seals a body of a pattern into a file.
    mutating func seal(
      _ count: Int, cancelled: () throws -> Void = {}
    ) throws -> ContentHash {
      let (epoch, key) = try world.keyRing.keyForWriting(
        world.document, in: world.generation, world.participants)
      #expect(FileManager.default.createFile(atPath: path, contents: nil))
      let file = try FileHandle(forWritingTo: URL(filePath: path))
      var position = 0
      let hash = try owner.sealer.seal(
        .init(
          privateHeader: [5], isCompressed: false, storedByteCount: count, bodyByteCount: count),
        at: place, generation: world.generation, under: epoch, key, using: &world.generator,
        body: { wanted in
          try cancelled()
          // Parts of uneven lengths, as a compressor gives them.
          let part = min(wanted, 50_000)
          defer { position += part }
          return [UInt8](repeating: UInt8(truncatingIfNeeded: position), count: part)
        }, output: { try file.write(contentsOf: $0) })
      try file.close()
      return hash
    }

    func source(cancelled: @escaping () throws -> Void = {}) throws -> (Opener.Source, FileHandle) {
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      let size = Int(try file.seekToEnd())
      let source = Opener.Source(byteCount: size) { position, count in
        try cancelled()
        try file.seek(toOffset: UInt64(position))
        return [UInt8](try file.read(upToCount: count) ?? Data())
      }
      return (source, file)
    }

    func remove() throws { try FileManager.default.removeItem(atPath: path) }
  }

  @Test func twoHundredMegabytesTakeLittleMemory() throws {
    var store = try Store()
    let count = 200 << 20
    let before = Self.greatestMemory()
    let hash = try store.seal(count)
    let (source, file) = try store.source()
    let opener = store.world.opener(of: store.owner)
    let checked = try opener.check(source, at: store.place, limits: .wholeStore)
    #expect(checked.hash == hash)
    var found = 0
    var begun = false
    let opened = try opener.open(
      checked, source, limits: .wholeStore,
      begin: { opened in
        begun = opened.privateHeader == [5]
      },
      body: { part in
        #expect(begun)
        found += part.count
      })
    #expect(found == count && opened.bodyByteCount == count)
    try file.close()
    try store.remove()
    // Other tests run in the same process: the files of these are small.
    #expect(Self.greatestMemory() - before < 64 << 20)
  }

  @Test func sealingAndOpeningCanBeCancelled() throws {
    struct Cancelled: Error {}
    var store = try Store()
    var calls = 0
    #expect(throws: Cancelled.self) {
      try store.seal(1 << 20) {
        calls += 1
        if calls == 5 { throw Cancelled() }
      }
    }
    _ = try store.seal(1 << 20)
    let opener = store.world.opener(of: store.owner)
    for last in [1, 5] {
      var reads = 0
      let (source, file) = try store.source {
        reads += 1
        if reads > last { throw Cancelled() }
      }
      #expect(throws: Cancelled.self) {
        try opener.check(source, at: store.place, limits: .wholeStore)
      }
      try file.close()
    }
    let (source, file) = try store.source()
    let checked = try opener.check(source, at: store.place, limits: .wholeStore)
    #expect(throws: Cancelled.self) {
      try opener.open(checked, source, limits: .wholeStore) { _ in throw Cancelled() }
    }
    try file.close()
    try store.remove()
  }

  @Test func bodyOfAnotherLengthIsRefused() throws {
    let store = try Store()
    var world = store.world
    let (epoch, key) = try world.keyRing.keyForWriting(
      world.document, in: world.generation, world.participants)
    for part in [[], [UInt8](repeating: 1, count: 11)] {
      #expect(throws: CodecError.self) {
        try store.owner.sealer.seal(
          .init(isCompressed: false, storedByteCount: 10, bodyByteCount: 10), at: store.place,
          generation: world.generation, under: epoch, key, using: &world.generator,
          body: { _ in part }, output: { _ in })
      }
    }
  }
}
