import SyncModel

/// The formats that this software can read. Files of the shared directory name
/// what a reader needs.
enum FormatVersion {
  /// The version of the directory's format that this software writes.
  static let current = 1
  /// The greatest least-reader-version that this software supports.
  static let reader = 1
  /// The required features that this software supports.
  static let knownFeatures: Set<String> = []

  /// Throws `newerVersionNeeded` if a file needs more than this software
  /// supports.
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
