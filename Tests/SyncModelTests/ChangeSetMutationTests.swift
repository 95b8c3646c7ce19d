import Testing

@testable import SyncModel

/// Whatever the bytes, the decoder answers with a set that can be written
/// again or with its own error, and never crashes.
struct ChangeSetMutationTests {
  private static let samples = ChangeSetSamples.all.map(\.set)

  /// Decodes what was made from the file of `original`; returns whether that was
  /// accepted. The writer can write again what the reader takes from it. It is
  /// another change set, unless only what the writer is free to choose differs: the
  /// compression, and flags that readers ignore.
  private func check(
    _ bytes: [UInt8], of original: SyncChangeSet, in file: [UInt8], _ comment: Comment
  ) -> Bool {
    do {
      let set = try ChangeSetCodec.decode(bytes)
      let written = try ChangeSetCodec.encode(set)
      #expect(try ChangeSetCodec.decode(written) == set, comment)
      #expect(try ChangeSetCodec.encode(ChangeSetCodec.decode(written)) == written, comment)
      if set == original {
        let content = try ChangeSetBytes.stored(bytes).encoded()
        #expect(try content == ChangeSetBytes.stored(file).encoded(), comment)
      } else {
        #expect(bytes != file, comment)
      }
      return true
    } catch is CodecError {
      return false
    } catch {
      Issue.record("\(comment): \(error)")
      return false
    }
  }

  @Test func mutatedLanesAndHeadersNeverCrash() throws {
    var generator = SeededGenerator(seed: 2024)
    var accepted = 0
    var runs = 0
    for (index, set) in Self.samples.enumerated() {
      let envelope = try ChangeSetBytes.stored(ChangeSetCodec.encode(set))
      let file = try envelope.encoded()
      for run in 0..<700 {
        var mutated = envelope
        for _ in 0...generator.below(3) {
          if generator.below(4) == 0 {
            Self.mutate(&mutated.privateHeader, using: &generator)
          } else {
            // The first bytes say most about the rest.
            let early = generator.below(2) == 0 ? 200 : Int.max
            Self.mutate(&mutated.body, before: early, using: &generator)
          }
        }
        runs += 1
        let bytes = try mutated.encoded()
        if check(bytes, of: set, in: file, "sample \(index), run \(run)") { accepted += 1 }
      }
    }
    // Values change without harm; structure does not.
    #expect(accepted > runs / 20 && accepted < runs * 19 / 20)
  }

  @Test func mutatedFilesWithTheRightHashNeverCrash() throws {
    var generator = SeededGenerator(seed: 77)
    var (accepted, runs) = (0, 0)
    for (index, set) in Self.samples.enumerated() {
      let bytes = try ChangeSetCodec.encode(set)
      for run in 0..<300 {
        var mutated = bytes
        Self.mutate(&mutated, before: mutated.count - 36, using: &generator)
        runs += 1
        let file = ChangeSetBytes.rehashed(mutated)
        if check(file, of: set, in: bytes, "sample \(index), run \(run)") { accepted += 1 }
      }
    }
    #expect(accepted > runs / 20 && accepted < runs / 2, "\(accepted) of \(runs)")
  }

  @Test func mutatedFilesWithTheOldHashAreNeverAccepted() throws {
    var generator = SeededGenerator(seed: 78)
    for set in Self.samples {
      let bytes = try ChangeSetCodec.encode(set)
      for _ in 0..<100 {
        var mutated = bytes
        mutated[generator.below(mutated.count)] ^= UInt8(1 << generator.below(8))
        #expect(throws: CodecError.self) { try ChangeSetCodec.decode(mutated) }
      }
    }
  }

  @Test func everyTruncationIsRefused() throws {
    let bytes = try ChangeSetCodec.encode(ChangeSetSamples.exceptionsAndMoves)
    for count in 0..<bytes.count {
      #expect(throws: CodecError.self) { try ChangeSetCodec.decode(Array(bytes.prefix(count))) }
    }
    let envelope = try ChangeSetBytes.stored(bytes)
    for count in 0..<envelope.body.count {
      var shorter = envelope
      shorter.body = Array(envelope.body.prefix(count))
      let file = try shorter.encoded()
      #expect(throws: CodecError.self) { try ChangeSetCodec.decode(file) }
    }
  }

  @Test func randomBytesAreRefused() {
    var generator = SeededGenerator(seed: 5)
    for _ in 0..<500 {
      let bytes = generator.bytes(generator.below(400))
      #expect(throws: CodecError.self) { try ChangeSetCodec.decode(bytes) }
    }
  }

  private static func mutate(
    _ bytes: inout [UInt8], before end: Int = .max, using generator: inout SeededGenerator
  ) {
    guard !bytes.isEmpty else { return }
    let position = generator.below(min(end, bytes.count))
    switch generator.below(5) {
    case 0: bytes[position] ^= UInt8(1 << generator.below(8))
    case 1: bytes[position] = [0, 1, 2, 3, 127, 128, 254, 255][generator.below(8)]
    case 2: bytes.insert(UInt8(truncatingIfNeeded: generator.next()), at: position)
    case 3: bytes.remove(at: position)
    default:
      // The greatest varint, where a count may be.
      bytes.replaceSubrange(
        position..<position + 1, with: [UInt8](repeating: 255, count: generator.below(10)) + [1])
    }
  }
}
