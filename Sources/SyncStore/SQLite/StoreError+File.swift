import Foundation
import SyncModel

extension StoreError {
  /// Throws unless there is a file at `path`.
  static func checkFile(_ path: String) throws {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      throw StoreError(
        .missing, path: path, message: "There is no such file.", remedy: "Check the path.")
    }
    if isDirectory.boolValue {
      throw StoreError(
        .notADatabase, path: path, message: "This is a folder, not an SQLite database.",
        remedy: "Name the database file itself.")
    }
    guard access(path, R_OK) == 0 else {
      throw StoreError(
        .notReadable, path: path, message: "This user may not read the database.",
        remedy: "Give this user permission to read and write the file.",
        detail: String(cString: strerror(errno)))
    }
  }
}
