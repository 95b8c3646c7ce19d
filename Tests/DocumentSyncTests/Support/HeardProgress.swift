import DocumentSync
import Foundation
import Testing

/// What a progress handler was told, and whether it makes sense.
final class HeardProgress: Sendable {
  /// One phase, from its beginning until the next one. Reading and applying
  /// take turns: who comes back to where a phase was goes on with it.
  struct Part {
    var phase: SyncProgress.Phase
    var snapshots: [SyncProgress]

    var last: SyncProgress { snapshots[snapshots.count - 1] }
    var isComplete: Bool {
      last.completedCount == last.totalCount && last.completedBytes == last.totalBytes
    }
  }

  private let lock = NSLock()
  nonisolated(unsafe) private var heard: [SyncProgress] = []

  var handler: SyncProgress.Handler {
    { [self] progress in lock.withLock { heard.append(progress) } }
  }

  var all: [SyncProgress] { lock.withLock { heard } }

  /// The phases. Records an issue if a count goes back, is beyond its total,
  /// or is given up before its total.
  func parts(sourceLocation: SourceLocation = #_sourceLocation) -> [Part] {
    var parts: [Part] = []
    for progress in all where progress.phase != .finished {
      if progress.totalCount > 0 {
        #expect(
          progress.completedCount <= progress.totalCount, "\(progress)",
          sourceLocation: sourceLocation)
      }
      if progress.totalBytes > 0 {
        #expect(
          progress.completedBytes <= progress.totalBytes, "\(progress)",
          sourceLocation: sourceLocation)
      }
      guard let index = parts.lastIndex(where: { $0.phase == progress.phase }),
        parts[index].last.completedCount <= progress.completedCount,
        parts[index].last.completedBytes <= progress.completedBytes,
        index == parts.count - 1 || !parts[index].isComplete
      else {
        // A phase that begins again has nothing done yet; otherwise a count went
        // back.
        let goesBack =
          progress.phase == parts.last?.phase
          && (progress.completedCount > 0 || progress.completedBytes > 0)
        #expect(!goesBack, "back to \(progress)", sourceLocation: sourceLocation)
        parts.append(Part(phase: progress.phase, snapshots: [progress]))
        continue
      }
      parts[index].snapshots.append(progress)
    }
    for part in parts {
      #expect(
        part.isComplete, "\(part.phase) ends at \(part.last)", sourceLocation: sourceLocation)
    }
    return parts
  }

  /// What was told last of each time that the operation was in a phase.
  func ends(
    of phase: SyncProgress.Phase, sourceLocation: SourceLocation = #_sourceLocation
  ) -> [SyncProgress] {
    parts(sourceLocation: sourceLocation).filter { $0.phase == phase }.map(\.last)
  }
}
