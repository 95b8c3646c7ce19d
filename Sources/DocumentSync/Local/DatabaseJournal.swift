import Foundation

/// The rollback journal beside a database.
struct DatabaseJournal {
  private let path: String

  /// The first bytes of a journal that belongs to a transaction.
  ///
  /// <https://www.sqlite.org/fileformat2.html#the_rollback_journal>
  private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

  init(ofDatabaseAt path: String) { self.path = path + "-journal" }

  /// Whether a transaction seems to be writing, or was interrupted. A journal that cannot be read does not
  /// count.
  var isInUse: Bool {
    guard let file = FileHandle(forReadingAtPath: path) else { return false }
    do {
      let bytes = try file.read(upToCount: Self.magic.count)
      try file.close()
      return bytes.map(Array.init) == Self.magic
    } catch {
      return false
    }
  }
}
