import Foundation
import SyncDirectory
import SyncModel
import Testing

/// A folder of the file system that goes away with the value.
final class TemporaryFolder {
  let path: String

  init() throws {
    path =
      FileManager.default.temporaryDirectory
      .appendingPathComponent("directory-\(ClientIdentifier.random())").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      Issue.record("\(path) could not be removed: \(error)")
    }
  }

  func write(_ bytes: [UInt8], to name: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path + "/" + name))
  }

  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(
      atPath: path + "/" + name, withIntermediateDirectories: true)
  }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: path + "/" + name, withDestinationPath: target)
  }
}

/// A path given as text.
func path(_ text: String) throws -> RelativePath {
  try #require(RelativePath(text))
}

/// Expects a directory error and returns it.
@discardableResult
func expectError(
  _ code: DirectoryError.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () throws -> Void
) throws -> DirectoryError {
  let error = try #require(
    throws: DirectoryError.self, sourceLocation: sourceLocation, performing: body)
  #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
  return error
}

/// Identifiers that are the same in every run.
enum Sample {
  static let alice = ClientIdentifier(bits: Bits128(high: 0xaaaa, low: 1))
  static let bob = ClientIdentifier(bits: Bits128(high: 0xbbbb, low: 2))
  static let root = RootIdentifier(bits: Bits128(high: .max, low: .max))
  static let document = DirectoryLayout.Document(DocumentName(bits: Bits128(high: 0, low: 0)))
  static let key = IntegrityKey(bits: Bits128(high: 7, low: 7))
  static let generation = document.generation(key)
  static let hash = HashFragment(ContentHash(of: [1, 2, 3]))
}
