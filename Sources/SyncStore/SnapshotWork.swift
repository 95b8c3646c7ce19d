import Foundation

/// How far the making of a snapshot has come.
///
/// All of it is written twice: what is removed from the copy is not to stay in
/// its free pages. The first time the growing file is the measure; how long
/// the second takes is known by then.
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
  /// How often SQLite has looked back in each part.
  private var looks = (copying: 0, cleaning: 0)

  /// - Parameters:
  ///   - file: The copy.
  ///   - byteCount: How long it is going to be.
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

  /// Called now and then while SQLite is at work.
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

  /// The copy is there.
  func beginCleaning() {
    part = .cleaning
    count.advance(to: byteCount)
  }

  /// So is the snapshot.
  func finish() { count.finish() }
}
