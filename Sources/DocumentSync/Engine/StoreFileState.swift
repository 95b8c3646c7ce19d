import Foundation

/// What the file system says of a store's file and its write-ahead log. It differs if the content does,
/// as far as that is known without reading it.
struct StoreFileState: Equatable {
  private struct File: Equatable {
    var number: UInt64
    var size: UInt64
    var date: Date
  }

  private var database: File?
  /// `nil` also while it is empty: opening and closing a store creates and removes it.
  private var log: File?

  /// Looks at the file, or at the one to which a link leads.
  init(_ path: String) {
    let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    database = Self.file(path)
    log = Self.file(path + "-wal").flatMap { $0.size > 0 ? $0 : nil }
  }

  /// Returns `nil` if there is no file, or it cannot be looked at.
  private static func file(_ path: String) -> File? {
    let attributes: [FileAttributeKey: Any]
    do { attributes = try FileManager.default.attributesOfItem(atPath: path) } catch {
      return nil
    }
    return File(
      number: (attributes[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0,
      size: (attributes[.size] as? NSNumber)?.uint64Value ?? 0,
      date: attributes[.modificationDate] as? Date ?? .distantPast)
  }
}
