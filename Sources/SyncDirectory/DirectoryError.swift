import SyncModel

/// The reason why a call on a shared directory failed.
public struct DirectoryError: Error, Hashable, Sendable {
  /// The kind of failure. A kind of directory may add codes of its own.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The code's name.
    public let rawValue: String
    /// Creates a code with the given name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The code's name.
    public var description: String { rawValue }

    /// The root does not exist.
    public static let away = Code(rawValue: "away")
    /// The shared directory does not answer: calls on it do not return.
    public static let noAnswer = Code(rawValue: "noAnswer")
    /// A file or a link is in the place of a folder.
    public static let notADirectory = Code(rawValue: "notADirectory")
    /// There is no such file or folder, but the root exists.
    public static let notFound = Code(rawValue: "notFound")
    /// Reading is not permitted.
    public static let notReadable = Code(rawValue: "notReadable")
    /// Writing is not permitted, or the file system is read-only.
    public static let notWritable = Code(rawValue: "notWritable")
    /// The name exists with other content.
    public static let exists = Code(rawValue: "exists")
    /// The file is larger than the caller allows.
    public static let tooLarge = Code(rawValue: "tooLarge")
    /// The name is that of a folder, a link or a device, not of a regular file.
    public static let notRegularFile = Code(rawValue: "notRegularFile")
    /// The folder to remove is not empty.
    public static let notEmpty = Code(rawValue: "notEmpty")
    /// The rules for published paths do not allow the path.
    public static let invalidPath = Code(rawValue: "invalidPath")
    /// The disk or the quota is full.
    public static let noSpace = Code(rawValue: "noSpace")
    /// The content of a published file differs from what was written.
    public static let damaged = Code(rawValue: "damaged")
    /// A failure that usually passes: a short read, a stale handle.
    public static let transient = Code(rawValue: "transient")
    /// The local file of a transfer could not be read or written.
    public static let localFile = Code(rawValue: "localFile")
    /// Any other failure of input or output.
    public static let io = Code(rawValue: "io")
  }

  /// The call that failed.
  public enum Operation: String, Hashable, Sendable, CaseIterable {
    /// ``SharedDirectory/check(for:)``
    case check
    /// ``SharedDirectory/list(_:)``
    case list
    /// ``SharedDirectory/read(_:limit:)``
    case read
    /// ``SharedDirectory/download(_:to:limit:progress:)``
    case download
    /// ``SharedDirectory/publish(_:at:by:)``
    case publish
    /// ``SharedDirectory/upload(localFile:to:by:progress:)``
    case upload
    /// ``SharedDirectory/remove(_:)``
    case remove
    /// ``SharedDirectory/removeLeftovers(of:)``
    case removeLeftovers
  }

  /// An error of the operating system.
  public struct SystemError: Hashable, Sendable {
    /// The value of `errno`.
    public var number: Int32
    /// The system's text for it.
    public var text: String
    /// Creates an error from its number and text.
    public init(number: Int32, text: String) {
      self.number = number
      self.text = text
    }
  }

  /// The kind of failure.
  public var code: Code
  /// The call that failed.
  public var operation: Operation
  /// The file or folder, for the user.
  public var path: String
  /// What to do next, a sentence for the user.
  public var remedy: Remedy
  /// What exactly went wrong, for the developer; may be empty.
  public var detail: String
  /// The system's error, if there was one.
  public var underlying: SystemError?
  /// Whether the same call may succeed in a moment.
  public var isRetryable: Bool

  /// Creates an error, with the usual remedy and retryability of `code` unless others are given.
  public init(
    _ code: Code, _ operation: Operation, path: String, detail: String = "",
    underlying: SystemError? = nil, remedy: Remedy? = nil, isRetryable: Bool? = nil
  ) {
    self.code = code
    self.operation = operation
    self.path = path
    self.detail = detail
    self.underlying = underlying
    self.remedy = remedy ?? code.usualRemedy
    self.isRetryable = isRetryable ?? Self.isUsuallyRetryable(code, operation)
  }

  /// Returns whether the call may succeed in a moment. A missing folder is a valid result of a
  /// listing, but a missing file was in a listing a moment ago, so another attempt may find it.
  private static func isUsuallyRetryable(_ code: Code, _ operation: Operation) -> Bool {
    switch code {
    case .transient, .damaged: true
    case .notFound: operation != .list
    default: false
    }
  }
}

extension DirectoryError: CustomStringConvertible {
  /// What failed, on which path, why, and what to do next.
  public var description: String {
    var why = [code.sentence]
    if !detail.isEmpty { why.append(detail) }
    if let underlying { why.append("\(underlying.text) (error \(underlying.number))") }
    return "\(operation.sentence) \(path): \(why.joined(separator: "; ")). \(remedy)"
  }
}

extension DirectoryError.Operation {
  fileprivate var sentence: String {
    switch self {
    case .check: "Cannot use the shared directory"
    case .list: "Cannot list"
    case .read: "Cannot read"
    case .download: "Cannot download"
    case .publish: "Cannot publish"
    case .upload: "Cannot upload"
    case .remove: "Cannot remove"
    case .removeLeftovers: "Cannot remove the leftovers in"
    }
  }
}

extension DirectoryError.Code {
  fileprivate var sentence: String {
    switch self {
    case .away: "the shared directory is not there"
    case .noAnswer: "the shared directory does not answer"
    case .notADirectory: "not a folder"
    case .notFound: "not there"
    case .notReadable: "reading is not permitted"
    case .notWritable: "writing is not permitted"
    case .exists: "the name exists with other content"
    case .tooLarge: "larger than allowed"
    case .notRegularFile: "not a regular file"
    case .notEmpty: "the folder is not empty"
    case .invalidPath: "not a path for published files"
    case .noSpace: "no space left"
    case .damaged: "its content differs from what was written"
    case .transient: "the shared directory failed for a moment"
    case .localFile: "the local file could not be used"
    case .io: "input or output failed"
    default: rawValue
    }
  }

  fileprivate var usualRemedy: Remedy {
    switch self {
    case .away: "Connect or mount the shared directory, then sync again."
    case .noAnswer: "Check the connection to the shared directory, then try again."
    case .notADirectory: "Name a folder, or move away what stands in its place."
    case .notFound: "Try again later; the file may not have arrived yet."
    case .notReadable: "Give this user permission to read the shared directory."
    case .notWritable: "Give this user permission to write to the shared directory."
    case .exists:
      "Make sure that no other program changes files in the shared directory, then try again."
    case .tooLarge: "Move the file away if it does not belong to DocumentSync, then try again."
    case .notRegularFile: "Move away what stands in place of the file."
    case .notEmpty: "Empty the folder first."
    case .invalidPath: "Report this as a defect of DocumentSync."
    case .noSpace: "Free some space in the shared directory, then try again."
    case .damaged: "Check the disk or the connection, then try again."
    case .transient: "Try again in a moment."
    case .localFile: "Check that the local disk has space and that the folder may be written."
    default: "Check the connection and the disk, then try again."
    }
  }
}
