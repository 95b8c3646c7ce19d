import SyncDirectory
import SyncModel
import SyncStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension SyncError {
  /// Converts an error of any layer to a `SyncError`.
  ///
  /// For callers that use a ``SharedDirectory`` directly and still want one
  /// kind of error. A `SyncError` stays as it is, and a `CancellationError`
  /// becomes `cancelled`. For every other error, ``underlying`` is that error;
  /// if no layer of DocumentSync throws it, the code is `internalFault`.
  ///
  /// - Parameters:
  ///   - operation: The operation that failed: a verb phrase.
  ///   - path: The path that the error is about, if the error does not contain
  ///     one.
  public static func wrapping(
    _ error: any Error, operation: String, path: String? = nil
  ) -> SyncError {
    switch error {
    case let error as SyncError: error
    case let error as StoreError: SyncError(error, operation: operation)
    case let error as DirectoryError: SyncError(error, operation: operation)
    case let error as CodecError: SyncError(error, operation: operation, path: path)
    case is CancellationError: .cancelled(operation)
    default:
      SyncError(
        .internalFault, operation: operation, path: path,
        message: "An unexpected error occurred.",
        remedy: "Report this as a defect of DocumentSync.", detail: "\(error)", underlying: error)
    }
  }

  static func cancelled(_ operation: String) -> SyncError {
    SyncError(
      .cancelled, operation: operation, message: "The operation was cancelled.",
      remedy: "Nothing is lost. Start it again.")
  }

  private init(_ error: StoreError, operation: String) {
    let codes: [StoreError.Code: Code] = [
      .missing: .storeMissing, .notADatabase: .notADatabase, .damaged: .storeDamaged,
      .alreadyUnderSync: .alreadyUnderSync, .notUnderSync: .notUnderSync,
      .newerFormat: .newerVersionNeeded, .unsupportedSchema: .storeUnsuitable,
      .badConfiguration: .storeUnsuitable, .foreignKeysBroken: .storeUnsuitable,
      .busy: .storeBusy, .closed: .storeClosed, .notWritable: .storeNotWritable,
      .notReadable: .storeNotReadable, .unpublishedEdits: .unpublishedEdits,
      .fork: .forkedClient, .noSpace: .noLocalSpace, .noSuchConflict: .noSuchConflict,
      .conflictNotOpen: .conflictNotOpen, .editRefused: .editRefused,
      .changeSetMissing: .wholeStoreMissing,
      .schemasDiffer: .storeUnsuitable,
      .badPolicy: .policyUnsuitable,
    ]
    self.init(
      codes[error.code] ?? .storeFailed, operation: operation, path: error.path,
      message: error.message, remedy: error.remedy, detail: error.detail, underlying: error)
  }

  private init(_ error: DirectoryError, operation: String) {
    let codes: [DirectoryError.Code: (Code, String)] = [
      .away: (.directoryAway, "The shared directory does not exist."),
      .noAnswer: (.directoryAway, "The shared directory does not answer."),
      .notADirectory: (.notADirectory, "This path should be a folder."),
      .notReadable: (.directoryNotReadable, "The shared directory may not be read."),
      .notWritable: (.directoryNotWritable, "The shared directory may not be written to."),
      .noSpace: (.noSharedSpace, "The shared directory has no space left."),
      .localFile: (.localFile, "A local file could not be read or written."),
    ]
    let hasNoSpace =
      error.code == .localFile && [ENOSPC, EDQUOT].contains(error.underlying?.number)
    let (code, message) =
      hasNoSpace
      ? (.noLocalSpace, "There is no space left on this device.")
      : codes[error.code] ?? (
        .directoryFailed, "Reading or writing in the shared directory failed."
      )
    var detail = "\(error.operation.rawValue): \(error.code)"
    if !error.detail.isEmpty { detail += "; \(error.detail)" }
    if let system = error.underlying { detail += "; \(system.text) (error \(system.number))" }
    self.init(
      code, operation: operation, path: error.path, message: message,
      remedy: hasNoSpace ? "Free some space on this device, then try again." : error.remedy,
      detail: detail, underlying: error)
  }

  private init(_ error: CodecError, operation: String, path: String?) {
    self.init(
      error.needsNewerReader ? .newerVersionNeeded : .malformedFile, operation: operation,
      path: path, message: error.sentence, remedy: error.remedy, detail: "\(error)",
      underlying: error)
  }
}
