import GRDB
import SyncModel

/// One database that is under sync: the entry to this module.
///
/// All bookkeeping is in the store itself, in tables whose names begin with `docsync_`, so that it
/// is atomic with the data. Other programs may read and write the file at any time; waiting for
/// them is bounded by ``StoreOptions/busyTimeout``. Methods block, may be called from any thread,
/// and run one at a time, apart from those of ``lastCommitted``. All throw ``StoreError``.
package final class LocalStore: Sendable {
  let store: OpenStore
  /// Whether this is ``lastCommitted``.
  let isCommitted: Bool

  init(_ store: OpenStore, isCommitted: Bool = false) {
    self.store = store
    self.isCommitted = isCommitted
  }

  /// The same store, for questions that should not wait for a synchronization: methods that only read
  /// answer from the last committed state while a transaction of this object runs, each from a single
  /// state.
  ///
  /// They wait for that transaction if the application has changed its schema since the last one. In
  /// rollback mode they wait, too, if it has begun to write to the file: at its commit, and before it
  /// if its changes do not fit into SQLite's cache. Methods that write wait as always.
  package var lastCommitted: LocalStore { LocalStore(store, isCommitted: true) }

  var connection: StoreConnection { store.connection }
  var options: StoreOptions { store.options }

  /// The path of the store.
  package var path: String { store.path }

  /// Returns the hash of a change set's file, computed by ``StoreOptions/hash``.
  package func hash(of bytes: [UInt8]) -> ContentHash { options.hash(bytes) }

  /// The document, the client and the directory to which the store is bound.
  package var binding: StoreBinding { store.binding }

  /// The choice of what is synchronized.
  package var configuration: StoreConfiguration { store.configuration }

  /// Replaces the recorded place of the directory, which is a hint.
  package func setDirectory(_ directory: String) throws {
    try store.changeBinding { $0.directory = directory }
  }

  /// Replaces the user's name for this device.
  package func setClientDescription(_ description: String) throws {
    try store.changeBinding { $0.clientDescription = description }
  }

  /// Registers a function for the policy `resolve:NAME`, for as long as this
  /// object lives; `nil` removes it.
  package func setResolver(_ name: String, _ resolver: ConflictResolver?) {
    store.setResolver(name, resolver)
  }

  /// Registers one function for the policies `resolve:NAME` of all names that have no function of
  /// their own.
  package func setResolver(_ resolver: NamedConflictResolver?) {
    store.setResolver(resolver)
  }

  /// Sets the observer of the rows that the methods of this object change; `nil` removes it.
  package func setChangeObserver(_ observer: RowChangeObserver?) {
    store.setChangeObserver(observer)
  }

  /// Closes the database. Further calls throw.
  package func close() throws { try store.close() }

  func write<Result>(_ body: (StoreSession) throws -> Result) throws -> Result {
    try store.write(body)
  }

  /// - Parameter isLong: Whether `body` reads many rows.
  func read<Result>(
    isLong: Bool = false, _ body: (StoreSession) throws -> Result
  ) throws -> Result {
    try isCommitted ? store.readCommitted(isLong: isLong, body) : store.read(body)
  }
}
