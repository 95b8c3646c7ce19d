import Foundation
import SyncModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The reason why the file with older conflicts (``ConflictArchive``) cannot be used. Until it can,
/// these conflicts stay in the store.
struct ArchiveProblem: Error, Hashable, Codable {
  enum Kind: String {
    case notAFile
    case notPermitted
    case noSpace
    case laterVersion
    case failed
  }

  private var name: String
  var detail: String?

  init(_ kind: Kind, detail: String? = nil) {
    name = kind.rawValue
    self.detail = detail
  }

  /// The reason why a call on the file failed.
  init(_ error: any Error) {
    let posix = (error as? POSIXError)?.code
    let cocoa = (error as? CocoaError)?.code
    if posix == .ENOSPC || posix == .EDQUOT || cocoa == .fileWriteOutOfSpace {
      self.init(.noSpace, detail: "\(error)")
    } else if posix == .EACCES || posix == .EPERM || posix == .EROFS
      || cocoa == .fileWriteNoPermission || cocoa == .fileReadNoPermission
      || cocoa == .fileWriteVolumeReadOnly
    {
      self.init(.notPermitted, detail: "\(error)")
    } else {
      self.init(.failed, detail: "\(error)")
    }
  }

  /// The reason that a system call has left in `errno`.
  static var ofLastCall: ArchiveProblem {
    ArchiveProblem(POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO))
  }

  /// A later version may have recorded a reason that this one does not know.
  var kind: Kind { Kind(rawValue: name) ?? .failed }

  /// The reason as a sentence, for the file at a path.
  func message(_ path: String) -> String {
    switch kind {
    case .notAFile: "“\(path)” is not an ordinary file."
    case .notPermitted: "This user may not write the file “\(path)”."
    case .noSpace: "There is no space for the file “\(path)”."
    case .laterVersion: "A newer version of this software has written the file “\(path)”."
    case .failed: "The file “\(path)” could not be read or written."
    }
  }

  /// What people can do about it.
  var remedy: Remedy {
    switch kind {
    case .notAFile: "Move it away; the next synchronization creates the file."
    case .notPermitted: "Give this user permission to read and write the file and its folder."
    case .noSpace: "Free some space on its disk."
    case .laterVersion: "Update DocumentSync on this device."
    case .failed: "Check its disk; if the file is damaged, move it away."
    }
  }

  /// The warning that older conflicts stay in the store.
  func warning(_ path: String) -> SyncWarning {
    var warning = SyncWarning(
      .conflictArchive, message: "older conflicts stay in the database. \(message(path)) \(remedy)")
    warning.reason = kind.rawValue
    return warning
  }

  /// The error for an operation that needs an entry of the file.
  func error(_ path: String) -> StoreError {
    StoreError(
      kind == .laterVersion ? .newerFormat : .notReadable, path: path,
      message: "The older conflicts cannot be read. \(message(path))", remedy: remedy,
      detail: detail)
  }
}

/// The error of a reading that did not find all that should be in the file with older conflicts, since
/// a transaction may have removed it that the reading does not know of.
struct IncompleteArchive: Error {}
