import Foundation

/// The progress of making a snapshot.
///
/// SQLite writes the whole snapshot twice, so that data removed from the copy does not stay in its
/// free pages. The length of the file measures the first pass, and the number of calls during the
/// first pass measures the second.
final class SnapshotWork {
  private enum Part {
    case copying
    case cleaning
  }

  private let file: String
  private let byteCount: Int
  private let count: WorkCount
  private let checkCancellation: () throws -> Void
  private var part = Part.copying
  /// The number of calls of ``look()`` in each part.
  private var looks = (copying: 0, cleaning: 0)

  /// - Parameters:
  ///   - file: The copy.
  ///   - byteCount: The number of bytes that it is going to have.
  init(
    file: String, byteCount: Int, progress: @escaping WorkProgress,
    checkCancellation: @escaping () throws -> Void
  ) {
    self.file = file
    self.byteCount = byteCount
    self.checkCancellation = checkCancellation
    count = WorkCount(progress)
    count.begin(2 * byteCount)
  }

  /// Reports the progress. SQLite calls this repeatedly while it is at work.
  func look() throws {
    try checkCancellation()
    switch part {
    case .copying:
      looks.copying += 1
      // SQLite makes the file when it first writes to it.
      guard FileManager.default.fileExists(atPath: file) else { return }
      let attributes = try FileManager.default.attributesOfItem(atPath: file)
      count.advance(to: min(byteCount, (attributes[.size] as? NSNumber)?.intValue ?? 0))
    case .cleaning:
      looks.cleaning += 1
      let share = min(1, Double(looks.cleaning) / Double(max(1, looks.copying)))
      count.advance(to: byteCount + Int(Double(byteCount) * share))
    }
  }

  /// Notes that the copy is complete.
  func beginCleaning() {
    part = .cleaning
    count.advance(to: byteCount)
  }

  /// Notes that the snapshot is complete.
  func finish() { count.finish() }
}
