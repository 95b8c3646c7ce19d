import SyncDirectory
import SyncModel

extension Error {
  /// Whether the error concerns one file in the shared directory, which may be
  /// damaged or not have arrived, rather than the whole directory.
  var concernsOneFile: Bool {
    switch self {
    case let error as DirectoryError:
      [.notFound, .transient, .tooLarge, .notRegularFile, .damaged].contains(error.code)
        || (error.code == .notReadable && error.operation != .check)
    case let error as SyncError: error.code == .malformedFile
    case is CodecError: true
    default: false
    }
  }
}
