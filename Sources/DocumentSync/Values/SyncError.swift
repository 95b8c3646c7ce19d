import SyncDirectory
import SyncModel
import SyncStore

/// The error of a failed operation.
///
/// Every public method of the managers, and every operation, throws this type
/// and no other; ``underlying`` is the error of a lower layer.
public struct SyncError: Error, Sendable {
  /// The kind of failure. Open: later versions may add their own.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The code's name.
    public let rawValue: String
    /// Creates a code with the given name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The code's name.
    public var description: String { rawValue }
  }

  /// How a caller should treat a failure.
  public enum Classification: String, Hashable, Sendable {
    /// An ordinary failure, none of those below.
    case failed
    /// The shared directory, or the part of it that the store is bound to, is
    /// missing. Nothing was changed; the same call works when it is back.
    case directoryAway
    /// Another process or program is working on the store. The same call works
    /// when that has ended.
    case busy
    /// The call was refused to protect data. Nothing was changed.
    case refused
  }

  /// The kind of failure.
  public var code: Code
  /// The operation that failed: a verb phrase, such as “synchronize”.
  public var operation: String
  /// The file or folder that the failure is about, as the user would name it.
  public var path: String?
  /// The failure as a sentence for the user.
  public var message: String
  /// The next action as a sentence for the user that names actions by codes.
  public var remedy: Remedy
  /// Details for the developer.
  public var detail: String?
  /// The error of a lower layer, if there was one.
  public var underlying: (any Error)?

  /// Creates an error from its parts.
  public init(
    _ code: Code, operation: String, path: String? = nil, message: String, remedy: Remedy,
    detail: String? = nil, underlying: (any Error)? = nil
  ) {
    self.code = code
    self.operation = operation
    self.path = path
    self.message = message
    self.remedy = remedy
    self.detail = detail
    self.underlying = underlying
  }

  /// How a caller should treat the failure.
  public var classification: Classification { code.classification }
}

extension SyncError: CustomStringConvertible {
  /// The message, the path, the remedy and the detail on one line.
  public var description: String {
    var text = message
    if let path { text += " (\(path))" }
    text += " \(remedy)"
    if let detail, !detail.isEmpty { text += " [\(detail)]" }
    return text
  }
}
