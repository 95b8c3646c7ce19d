import Foundation
import Testing

@testable import SyncModel

/// The files in Fixtures/ChangeSets, which stay for ever.
///
/// With `DOCSYNC_WRITE_FIXTURES=1` in the environment they are written again,
/// which is right only while a format version is being made.
@Suite(.serialized)
struct GoldenChangeSetTests {
  private static let directory = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/ChangeSets/v1")

  /// The error that the files of each directory give.
  private static let damages: [(directory: String, code: CodecError.Code)] = [
    ("truncated", .truncated), ("bad-magic", .badMagic), ("bad-checksum", .badChecksum),
    ("unknown-version", .unsupportedVersion), ("damaged-version", .badChecksum),
    ("unknown-critical-flag", .unknownCriticalField),
    ("unknown-critical-field", .unknownCriticalField), ("unknown-suite", .unknownCriticalField),
    ("wrong-type", .wrongType), ("length-over-cap", .lengthOverCap), ("wrong-count", .wrongCount),
    ("bad-compression", .badCompression), ("trailing-bytes", .malformed),
    ("nonzero-reserved", .malformed), ("unknown-action", .malformed),
  ]

  /// Writes the files, if the environment asks for it.
  init() throws {
    guard ProcessInfo.processInfo.environment["DOCSYNC_WRITE_FIXTURES"] != nil else { return }
    for sample in ChangeSetSamples.all {
      try write(ChangeSetCodec.encode(sample.set), "ok", sample.name)
    }
    for damage in Self.damages {
      try write(damaged(damage.directory), damage.directory, "change-set")
    }
  }

  @Test(arguments: ChangeSetSamples.all.map(\.name))
  func goodFileGivesWhatItWasMadeFrom(name: String) throws {
    let set = try #require(ChangeSetSamples.all.first { $0.name == name }?.set)
    let bytes = try read("ok", name)
    #expect(try ChangeSetCodec.decode(bytes) == set)
    // The compressed bytes depend on the version of zlib; what is in the
    // lanes does not.
    let again = try ChangeSetBytes.stored(ChangeSetCodec.encode(set))
    #expect(try ChangeSetBytes.stored(bytes) == again)
  }

  @Test func everyGoodFileHasASample() throws {
    let names = try FileManager.default.contentsOfDirectory(
      atPath: Self.directory.appending(path: "ok").path)
    #expect(Set(names) == Set(ChangeSetSamples.all.map { "\($0.name).syncchg" }))
  }

  @Test(arguments: damages.map(\.directory))
  func damagedFileGivesTheErrorOfItsDirectory(directory: String) throws {
    let code = try #require(Self.damages.first { $0.directory == directory }?.code)
    let bytes = try read(directory, "change-set")
    let error = #expect(throws: CodecError.self) { try ChangeSetCodec.decode(bytes) }
    #expect(error?.code == code)
  }

  @Test func decoderWrittenFromThePageAloneGivesTheSame() throws {
    let tool = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "decode_changeset.py")
    let files = ChangeSetSamples.all.map { path("ok", $0.name).path }
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", tool.path] + files
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)

    var expected: [String: Any] = [:]
    for file in files {
      let bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
      let name = URL(filePath: file).lastPathComponent
      expected[name] = ChangeSetJSON.object(try ChangeSetCodec.decode(bytes))
    }
    let theirs = try #require(JSONSerialization.jsonObject(with: output) as? [String: Any])
    #expect(Set(theirs.keys) == Set(expected.keys))
    for (name, object) in expected {
      let ours = try JSONSerialization.data(withJSONObject: object, options: .sortedKeys)
      let other = try JSONSerialization.data(
        withJSONObject: try #require(theirs[name]), options: .sortedKeys)
      #expect(String(decoding: ours, as: UTF8.self) == String(decoding: other, as: UTF8.self))
    }
  }

  private func damaged(_ name: String) throws -> [UInt8] {
    let set = ChangeSetSamples.exceptionsAndMoves
    let good = try ChangeSetCodec.encode(set)
    var envelope = try ChangeSetBytes.stored(good)
    switch name {
    case "truncated": return Array(good.dropLast(50))
    case "bad-magic": return ChangeSetBytes.replacing(good, at: 6, with: [0x0A])
    case "bad-checksum": return good.dropLast(60) + [good[good.count - 60] ^ 1] + good.suffix(59)
    case "unknown-version": return ChangeSetBytes.replacing(good, at: 8, with: [2, 0])
    case "damaged-version": return good[..<8] + [2] + good[9...]
    case "unknown-critical-flag": return ChangeSetBytes.replacing(good, at: 15, with: [0x80])
    case "unknown-critical-field":
      envelope.fields = [Envelope.Field(tag: Envelope.Field.firstCriticalTag, content: [1, 2, 3])]
      return try envelope.encoded()
    case "unknown-suite": return ChangeSetBytes.replacing(good, at: 11, with: [1])
    case "wrong-type": return ChangeSetBytes.replacing(good, at: 10, with: [5])
    case "length-over-cap":
      return ChangeSetBytes.replacing(good, at: 80, with: [0, 0, 0, 0, 0, 1, 0, 0])
    case "wrong-count":
      // After the dependencies, the schema, the times and the number of tables.
      let rows = 1 + 32 + 17 + 1
      envelope.privateHeader[rows] += 1
      return try envelope.encoded()
    case "bad-compression":
      let compressed = try Envelope.decode(ChangeSetCodec.encode(ChangeSetSamples.uuidKeys))
      var broken = compressed
      broken.body[3] ^= 0xFF
      return try broken.encoded()
    case "trailing-bytes": return good + [0]
    case "nonzero-reserved": return ChangeSetBytes.replacing(good, at: 24, with: [1])
    default:
      var changed = set
      changed.tables[0].actions[0] = 9
      let lane = ChangeSetCodec.encodeTables(changed.tables)
      envelope.body = lane.structure + lane.text + lane.symbols + lane.raw
      return try envelope.encoded()
    }
  }

  private func path(_ directory: String, _ name: String) -> URL {
    Self.directory.appending(path: directory).appending(path: "\(name).syncchg")
  }

  private func read(_ directory: String, _ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: path(directory, name)))
  }

  private func write(_ bytes: [UInt8], _ directory: String, _ name: String) throws {
    let file = path(directory, name)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: file)
  }
}

/// A change set in the form that `decode_changeset.py` prints.
enum ChangeSetJSON {
  static func object(_ set: SyncChangeSet) -> [String: Any] {
    [
      "root": hex(set.header.root.bits.bytes), "document": hex(set.header.document.bits.bytes),
      "generation": hex(set.header.generation.bits.bytes),
      "client": hex(set.header.client.bits.bytes), "number": "\(set.header.number)",
      "previous": set.header.previous.map { hex($0.bytes) } ?? "",
      "dependencies": set.dependencies.sorted.map { client, entry in
        [hex(client.bits.bytes), "\(entry.number)", hex(entry.hash.bytes)]
      },
      "schema": hex(set.schema.bytes), "tables": set.tables.map(object),
    ]
  }

  private static func object(_ table: TableChanges) -> [String: Any] {
    [
      "table": table.table.text, "identity": Int(table.identity.rawValue),
      "keyColumns": table.keyColumns.map(\.text), "columns": table.columns.map(\.text),
      "actions": table.actions.map { Int($0) }, "keys": table.keys.map(values),
      "times": table.times.map { "\($0.rawValue)" }, "shapes": table.shapes,
      "rowShapes": table.rowShapes.map { Int($0) }, "cells": table.cells.map(values),
      "exceptions": table.exceptions.map { exception -> [Any] in
        [
          exception.row, exception.column ?? -1, "\(exception.stamp.time.rawValue)",
          hex(exception.stamp.client.bits.bytes),
        ]
      },
      "moves": table.moves.map { move -> [Any] in [move.row, hex(move.destination.bytes)] },
    ]
  }

  private static func values(_ column: ValueColumn) -> [String] {
    (0..<column.count).map { index in
      switch column[index] {
      case .null: return "null"
      case .integer(let integer): return "integer \(integer)"
      case .real(let real):
        let digits = String(real.bitPattern, radix: 16)
        return "real " + String(repeating: "0", count: 16 - digits.count) + digits
      case .text(let bytes): return "text " + hex(bytes)
      case .blob(let bytes): return "blob " + hex(bytes)
      case .identity(let row): return "identity " + hex(row.bytes)
      }
    }
  }

  static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
