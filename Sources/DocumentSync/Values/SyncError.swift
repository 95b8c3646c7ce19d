import SyncDirectory
import SyncModel
import SyncStore

/// Why an operation of this module failed.
///
/// Every public method of the managers, and every operation, fails with this
/// type and no other; ``underlying`` is the error of a lower layer.
public struct SyncError: Error, Sendable {
  /// The kind of failure. Open: later versions may add their own.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The code's name.
    public let rawValue: String
    /// A code of the given name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The code's name.
    public var description: String { rawValue }
  }

  /// How a caller should treat a failure.
  public enum Classification: String, Hashable, Sendable {
    /// An ordinary failure, neither of the two below.
    case failed
    /// The shared directory, or what the store is bound to in it, is not
    /// there. Nothing was changed; the same call works when it is back.
    case directoryAway
    /// The call was refused so that no data is harmed. Nothing was changed.
    case refused
  }

  /// The kind of failure.
  public var code: Code
  /// What was being done: a verb phrase, such as “synchronize”.
  public var operation: String
  /// The file or folder that it is about, as the user would name it.
  public var path: String?
  /// What failed, a sentence for the user.
  public var message: String
  /// What to do next, a sentence for the user that names actions by codes.
  public var remedy: Remedy
  /// The detail for the developer.
  public var detail: String?
  /// The error of the layer below, where there was one.
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
  /// Message, path, remedy and detail on one line.
  public var description: String {
    var text = message
    if let path { text += " (\(path))" }
    text += " \(remedy)"
    if let detail, !detail.isEmpty { text += " [\(detail)]" }
    return text
  }
}
