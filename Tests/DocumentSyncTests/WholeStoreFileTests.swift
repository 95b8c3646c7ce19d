import Foundation
import SyncModel
import Testing

@testable import DocumentSync

struct WholeStoreFileTests {
  let scratch: Scratch
  private let operation = SyncOperation<Void>("test", environment: SyncEnvironment())
  private var file: WholeStoreFile { WholeStoreFile(OperationContext(operation)) }
  private let header = WholeStoreHeader(
    root: .random(), document: .random(), generation: .random(), generationOrdinal: 1,
    client: .random(), number: 3, vector: VersionVector(), commands: VersionVector(),
    schema: ContentHash(of: []),
    storeByteCount: 0, storeHash: ContentHash(of: []), milliseconds: 5)

  init() throws { scratch = try Scratch() }

  private func path(_ name: String) -> String { scratch.path + "/" + name }

  private func write(_ bytes: [UInt8]) throws -> WholeStoreFile.Checked {
    try Data(bytes).write(to: URL(fileURLWithPath: path("database")))
    return try file.write(path("database"), header: header, to: path("file"))
  }

  private func bytes(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: path(name))))
  }

  @Test(arguments: [0, 1, 1 << 20, 3 << 20 + 17])
  func databaseOfAnyLengthComesBack(length: Int) throws {
    let content = (0..<length).map { UInt8(truncatingIfNeeded: $0 / 3) }
    let written = try write(content)
    let checked = try file.check(path("file"))
    #expect(checked.hash == written.hash)
    #expect(checked.hash == ContentHash(of: try bytes("file")))
    #expect(checked.header == written.header)
    #expect(checked.byteCount == written.byteCount)
    try file.expand(checked, at: path("file"), to: path("copy"))
    #expect(try bytes("copy") == content)
  }

  @Test func anyChangedByteIsNoticed() throws {
    _ = try write((0..<500).map { UInt8(truncatingIfNeeded: $0 * 7) })
    let whole = try bytes("file")
    for index in whole.indices {
      var damaged = whole
      damaged[index] ^= 0x40
      try Data(damaged).write(to: URL(fileURLWithPath: path("damaged")))
      #expect(throws: CodecError.self) { try file.check(path("damaged")) }
    }
  }

  @Test func anyMissingEndIsNoticed() throws {
    _ = try write((0..<500).map { UInt8(truncatingIfNeeded: $0 * 7) })
    let whole = try bytes("file")
    for count in 0..<whole.count {
      try Data(whole.prefix(count)).write(to: URL(fileURLWithPath: path("short")))
      #expect(throws: CodecError.self) { try file.check(path("short")) }
    }
  }

  @Test func databaseThatIsNotWhatTheHeaderSaysIsNotGivenOut() throws {
    _ = try write([UInt8](repeating: 9, count: 100_000))
    var checked = try file.check(path("file"))
    checked.header.storeHash = ContentHash(of: [1])
    #expect(throws: CodecError.self) {
      try file.expand(checked, at: path("file"), to: path("other"))
    }
    checked = try file.check(path("file"))
    checked.header.storeByteCount = 10
    #expect(throws: CodecError.self) {
      try file.expand(checked, at: path("file"), to: path("longer"))
    }
    #expect(try bytes("longer").count <= 10)
  }

  @Test func cancellationStopsItAtTheNextPart() throws {
    try Data([UInt8](repeating: 1, count: 100)).write(
      to: URL(fileURLWithPath: path("database")))
    operation.cancel()
    let error = #expect(throws: SyncError.self) {
      try file.write(path("database"), header: header, to: path("file"))
    }
    #expect(error?.code == .cancelled)
  }
}
