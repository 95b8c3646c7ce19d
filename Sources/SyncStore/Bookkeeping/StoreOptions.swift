import Foundation
import SyncModel

/// How a store is opened.
package struct StoreOptions: Sendable {
  /// How long to wait for other programs, in seconds.
  package var busyTimeout: Double = 10
  /// Milliseconds since 1970, for what is shown to people. Stamps of edits
  /// are taken where the edits are made.
  package var now: @Sendable () -> Int64
  /// Random words, from which a new document's keys are drawn. The
  /// identities of rows are drawn where the rows are inserted.
  package var random: @Sendable () -> UInt64
  /// The most rows that one change set carries, about. More than 100,000 count as 100,000:
  /// readers take no more.
  package var rowsPerChangeSet = 20_000
  /// The most bytes that one change set carries before compression, about. More than 6 MiB count
  /// as 6 MiB: readers bound what a file may stand for.
  package var bytesPerChangeSet = 6 << 20
  /// A transaction that has applied this many rows is committed before the
  /// next change set.
  package var rowsPerTransaction = 100_000
  /// The most bytes of one block of rows' states, so that it fits on a page.
  package var stampBlockBytes = StampBlocks.standardCapacity
  /// The most entries that the conflict journal keeps; open questions are
  /// kept beyond it.
  package var conflictEntries = 10_000
  /// The most bytes of values that the conflict journal keeps, likewise.
  package var conflictBytes = 16 << 20
  /// The places of stores, by which a copy or an older state of a store is noticed; `nil` notices
  /// nothing.
  package var places: StorePlaces?
  /// How many milliseconds a change may be ahead of the clock here before it causes a warning: a
  /// day.
  package var clockTolerance: Int64 = 24 * 60 * 60 * 1000
  /// Called with every statement that runs on the store's connection, its values included, for tests
  /// that count what is read and written; `nil` calls nothing.
  package var onStatement: (@Sendable (String) -> Void)?
  /// Computes the hash of a change set's file when it is sealed, and when it is published. Tests
  /// replace it to count.
  package var hash: @Sendable ([UInt8]) -> ContentHash = { ContentHash(of: $0) }

  /// The defaults, with the system's clock and generator.
  package init() {
    now = { Int64((Date().timeIntervalSince1970 * 1000).rounded()) }
    random = {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
  }
}
