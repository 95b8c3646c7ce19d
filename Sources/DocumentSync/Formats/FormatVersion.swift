import SyncModel

/// What this software can read. Files of the shared directory state what a
/// reader needs.
enum FormatVersion {
  /// The version of the directory's format that is written.
  static let current = 1
  /// The greatest least-reader-version that is understood.
  static let reader = 1
  /// The required features that are understood.
  static let knownFeatures: Set<String> = []

  /// Throws `newerVersionNeeded` if a file asks for more than is understood.
  static func check(
    leastReader: Int, features: [String], operation: String, path: String
  ) throws(SyncError) {
    let unknown = features.filter { !knownFeatures.contains($0) }.sorted()
    guard leastReader > reader || !unknown.isEmpty else { return }
    throw SyncError(
      .newerVersionNeeded, operation: operation, path: path,
      message: "This needs a newer version of DocumentSync.",
      remedy: "Update DocumentSync on this device.",
      detail: "needs reader version \(leastReader)"
        + (unknown.isEmpty ? "" : ", features \(unknown.joined(separator: ", "))"))
  }
}
