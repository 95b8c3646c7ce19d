import Foundation
import SyncModel

/// The options with which a store is opened.
package struct StoreOptions: Sendable {
  /// How long to wait for other programs that lock the store, in seconds.
  package var busyTimeout: Double = 10
  /// Returns the present time in milliseconds since 1970, for times that users see. The stamps of
  /// edits are taken when the edits are made.
  package var now: @Sendable () -> Int64
  /// Returns random words for a new document's keys. The identities of rows are drawn when the rows
  /// are inserted.
  package var random: @Sendable () -> UInt64
  /// The approximate greatest number of rows in a change set. More than 100,000 count as 100,000:
  /// readers accept no more.
  package var rowsPerChangeSet = 20_000
  /// The approximate greatest number of bytes in a change set before compression. More than 6 MiB
  /// count as 6 MiB: readers limit the uncompressed size of a file.
  package var bytesPerChangeSet = 6 << 20
  /// The caps on a change set. Edits over them stay on this device (``HeldEdits``).
  package var limits = CodecLimits.default
  /// How long the database must be unchanged before tables that a program has created, dropped or made
  /// again count: some programs make a table again without a transaction. Ten times as long is the limit,
  /// however often programs write. Zero waits for nothing.
  package var schemaPause = Duration.zero
  /// The number of applied rows after which a transaction is committed before the next change set.
  package var rowsPerTransaction = 100_000
  /// How long a transaction may apply change sets before it is committed: no program can write to
  /// the store meanwhile. A change set is applied as a whole, however long it takes. `nil` for no
  /// limit.
  package var transactionTime: Duration? = .milliseconds(50)
  /// Pauses between two such transactions, given how long the first one took, so that programs that
  /// wait for the store get their turn. SQLite's busy timeout looks only every 100 ms in the end.
  package var pause: @Sendable (Duration) -> Void = {
    Thread.sleep(forTimeInterval: max(0.005, $0 / .seconds(10)))
  }
  /// The most bytes of one block of rows' states, so that it fits on a page.
  package var stampBlockBytes = StampBlocks.standardCapacity
  /// The most entries that the table of the conflict journal holds; open entries may exceed it.
  package var conflictEntries = 10_000
  /// The most bytes of values that the table holds; open entries may exceed it.
  package var conflictBytes = 16 << 20
  /// The most bytes of the file beside the store to which older entries go, apart from what one
  /// transaction adds.
  package var conflictArchiveBytes = 64 << 20
  /// The places of stores, which reveal a copied or restored store; `nil` looks for neither.
  package var places: StorePlaces?
  /// How many milliseconds a change may be ahead of this device's clock before it causes a warning:
  /// by default a day.
  package var clockTolerance: Int64 = 24 * 60 * 60 * 1000
  /// Called at each step of writing that file. If it throws, writing fails there.
  package var onArchiveStep: (@Sendable (ConflictArchiveStep) throws -> Void)?
  /// Called with every statement that runs on the store's connection, its values included, so that
  /// tests can count what is read and written.
  package var onStatement: (@Sendable (String) -> Void)?
  /// Computes the hash of a change set's file when it is sealed, and when it is published. Tests
  /// replace it to count.
  package var hash: @Sendable ([UInt8]) -> ContentHash = { ContentHash(of: $0) }

  /// Creates the default options, with the system's clock and generator.
  package init() {
    now = { Int64((Date().timeIntervalSince1970 * 1000).rounded()) }
    random = {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
  }
}
