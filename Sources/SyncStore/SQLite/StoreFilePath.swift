import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The paths of the files beside a store.
package enum StoreFilePath {
  /// Returns the path of a store with an ending. Links to the store are followed, as SQLite does: by
  /// whichever name a program opens the store, it has one file of each kind.
  package static func beside(_ store: String, _ ending: String) -> String {
    var information = stat()
    guard lstat(store, &information) == 0, information.st_mode & S_IFMT == S_IFLNK else {
      return store + ending
    }
    return URL(fileURLWithPath: store).resolvingSymlinksInPath().path + ending
  }
}
