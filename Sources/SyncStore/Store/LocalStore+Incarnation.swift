import Foundation
import GRDB
import SyncModel

extension LocalStore {
  /// Makes the store a new client, in one transaction.
  ///
  /// Change sets that were sealed before belong to the former client, and stay in the store until
  /// they are published for that client (``ancestralChangeSets()``). Change sets that no longer
  /// belong to it are rewritten as change sets of the new client. Each value keeps its stamp, so
  /// that merging them where they are known changes nothing.
  ///
  /// Removes the records of the layer above whose keys begin with `client.`. If another state of
  /// the store may go on as the former client, the record `client.marker` becomes `former.marker`.
  ///
  /// - Parameter standing: Called with each change set of the present client, in order. All change
  ///   sets from the first one that is not common are rewritten.
  @discardableResult
  package func beginIncarnation(
    _ reason: Incarnation.Reason, isAncestorGone: Bool = false,
    standing: (SealedChangeSet) throws -> Incarnation.Standing = { _ in .common }
  ) throws -> Incarnation {
    let sealed = try sealedChangeSets()
    var branch: [IncarnationBranch.Part] = []
    for sealed in sealed {
      let standing = try standing(sealed)
      guard standing != .common || !branch.isEmpty else { continue }
      let changeSet = try ChangeSetCodec.decode(sealedBytes(sealed.number))
      branch.append(
        IncarnationBranch.Part(changeSet: changeSet, isKnown: standing != .unknown))
    }
    let before = binding
    let (incarnation, after) = try write { session in
      let began = try Self.begin(
        session.clients, before, reason, isAncestorGone: isAncestorGone,
        place: try options.places.map { try $0.place(of: path) }, options, session.database)
      try IncarnationBranch(session: session, former: before, new: began.binding).move(branch)
      return (began.incarnation, began.binding)
    }
    adopt(after)
    return incarnation
  }

  /// Rewrites the change sets that the store has brought from another generation (``returning()``)
  /// as change sets of its present client, and applies them. Each value keeps its stamp, so values
  /// that lost to them before lose again, and newer values stay. Idempotent.
  ///
  /// Returns how many there were.
  package func rewriteReturning(
    checkCancellation: @escaping () throws -> Void = {}
  ) throws -> Int {
    try write { session in
      let returning = try session.returning()
      guard !returning.isEmpty else { return 0 }
      try rewrite(
        returning.map { try ChangeSetCodec.decode($0.bytes) }, isOwn: true, session,
        checkCancellation: checkCancellation)
      try session.forgetReturning()
      return returning.count
    }
  }

  /// Rewrites change sets as change sets of this client, and applies them, where no device applies
  /// them as they are: those that other clients left behind in an earlier generation, or those of
  /// former states of this store. Each value keeps its stamp.
  ///
  /// Skips a change set if this store has all its changes already, in whichever way they came: if
  /// several devices find the same files, one of them rewrites them.
  ///
  /// - Parameters:
  ///   - changeSets: In causal order.
  ///   - records: Values of ``setRecord(_:to:)`` to set in the same transaction; `nil` removes one.
  ///
  /// Returns how many were written.
  @discardableResult
  package func rewrite(
    _ changeSets: [SyncChangeSet], records: [String: [UInt8]?] = [:],
    checkCancellation: @escaping () throws -> Void = {}
  ) throws -> Int {
    try write { session in
      let count = try rewrite(
        changeSets, isOwn: false, session, checkCancellation: checkCancellation)
      try session.records.write(records)
      return count
    }
  }

  @discardableResult
  private func rewrite(
    _ changeSets: [SyncChangeSet], isOwn: Bool, _ session: StoreSession,
    checkCancellation: @escaping () throws -> Void
  ) throws -> Int {
    try seal(session, checkCancellation: checkCancellation)
    let conflicts = session.conflicts
    let lastConflict = try conflicts.journal.summary().last
    defer { conflicts.formerSelf = nil }
    var count = 0
    for former in changeSets {
      try checkCancellation()
      let head = try session.ownHead()
      var changeSet = former
      changeSet.header = SyncChangeSet.Header(
        root: binding.root, document: binding.document, generation: binding.generation,
        client: binding.client, number: (head?.number ?? 0) + 1, previous: head?.hash)
      changeSet.dependencies = try session.clients.vector()
      changeSet.dependencies[binding.client] = nil
      changeSet.tables = former.tables.map { $0.keepingStamps(of: former.header.client) }
      var concurrency: Concurrency?
      if isOwn {
        // Only the original records what its author knew when it was made.
        let author = try session.clients.number(of: former.header.client)
        concurrency = try Concurrency(
          author: author, dependencies: former.dependencies, session: session, countsOwn: false)
        conflicts.formerSelf = author
      }
      guard try !ChangeContainment(session: session).contains(changeSet) else {
        // Values that have lost are entered in the journal.
        guard let concurrency else { continue }
        let apply = ChangeApply(session: session, clockTolerance: options.clockTolerance)
        try apply.merge(changeSet, author: session.own, concurrency)
        try apply.finish()
        continue
      }
      let bytes = try ChangeSetCodec.encode(changeSet)
      let entry = VersionVector.Entry(
        number: changeSet.header.number, hash: ContentHash(of: bytes))
      try session.outbox.add(bytes, as: entry, rowCount: changeSet.rowCount, of: session.own)
      // Each one is finished before the next one, which is compared with what is in the tables.
      let apply = ChangeApply(session: session, clockTolerance: options.clockTolerance)
      _ = try apply.apply(
        changeSet, hash: entry.hash, byteCount: bytes.count, concurrency: concurrency)
      try apply.finish()
      count += 1
    }
    try conflicts.journal.finish()
    try ConflictTable.removeRepeated(after: lastConflict, session.database)
    return count
  }

  /// Makes the database that of a new client: changes the binding, and what is stored for the
  /// present client.
  static func begin(
    _ clients: ClientRegistry, _ binding: StoreBinding, _ reason: Incarnation.Reason,
    isAncestorGone: Bool, place: StorePlace?, _ options: StoreOptions, _ database: Database
  ) throws -> (incarnation: Incarnation, binding: StoreBinding) {
    var after = binding
    after.client = ClientIdentifier(
      bits: Bits128(high: options.random(), low: options.random()))
    after.ancestor = binding.client
    let incarnation = Incarnation(
      ancestor: binding.client, client: after.client, reason: reason,
      isAncestorGone: isAncestorGone, milliseconds: options.now())
    let encoder = JSONEncoder()
    try MetaTable.write(.binding, to: Array(encoder.encode(after)), database)
    var unannounced = try incarnations(database)
    unannounced.append(incarnation)
    try MetaTable.write(.incarnations, to: Array(encoder.encode(unannounced)), database)
    _ = try clients.number(of: after.client)
    try SharedLog.note(database)
    // If no store is the ancestor any more, this store takes the ancestor's change sets along into
    // another generation.
    if !isAncestorGone {
      try Outbox(database: database, clients: clients).removePublished()
    }
    let records = DeviceRecords(database: database)
    if !isAncestorGone, reason == .copied || reason == .forked {
      try records.rename("client.marker", to: "former.marker")
    }
    try records.removeAll(startingWith: "client.")
    try CommandQueue(database: database).keepUnpublished()
    if let place {
      _ = try settle(place, of: after.client, former: nil, options, database)
      if isAncestorGone {
        try options.places?.keep(
          successor: after.client.description, of: binding.client.description)
      }
    }
    return (incarnation, after)
  }

  /// Returns the clients that stores of `client` became on this machine, one after the other, when
  /// no store of it was left. Their changes are this store's own, although the store may be an
  /// older state that does not know them.
  package func successors(of client: ClientIdentifier) throws -> [ClientIdentifier] {
    guard let places = options.places else { return [] }
    var found: [ClientIdentifier] = []
    var open = [client]
    while let next = open.popLast() {
      let successors = try places.successors(of: next.description).compactMap {
        ClientIdentifier($0)
      }.filter { $0 != client && !found.contains($0) }
      found += successors
      open += successors
    }
    return found
  }

  // MARK: - Announcing

  /// Returns the incarnations that were not announced yet, in order.
  package func unannouncedIncarnations() throws -> [Incarnation] {
    try read { try Self.incarnations($0.database) }
  }

  /// Notes that all incarnations so far have been announced.
  package func noteIncarnationsAnnounced() throws {
    try write { try MetaTable.write(.incarnations, to: Array("[]".utf8), $0.database) }
  }

  private static func incarnations(_ database: Database) throws -> [Incarnation] {
    try MetaTable.value(.incarnations, database) ?? []
  }

  // MARK: - The place

  /// Checks whether the store is still the only state of its client, and makes it a new client if
  /// it is in another place or older than it was. Returns the new incarnation if there is one.
  ///
  /// Opening a store includes this; for a store that stays open for long, call it before each
  /// synchronization.
  @discardableResult
  package func checkPlace() throws -> Incarnation? {
    let before = binding
    let began = try StoreError.mapping(path) {
      try connection.queue.writeWithoutTransaction { database in
        try Self.checkPlace(database, before, path: path, options)
      }
    }
    guard let began else { return nil }
    adopt(began.binding)
    return began.incarnation
  }

  /// Does the same as ``checkPlace()`` before there is a store. Returns the new binding too.
  static func checkPlace(
    _ database: Database, _ binding: StoreBinding, path: String, _ options: StoreOptions
  ) throws -> (incarnation: Incarnation, binding: StoreBinding)? {
    guard let places = options.places else { return nil }
    let place = try places.place(of: path)
    let recorded = try record(database)
    if let recorded {
      let tokens = try places.tokens(of: binding.client.description)
      let isOlder = recorded.isOlder(than: tokens, in: places.folder)
      let isElsewhere = !recorded.place.isSame(as: place)
      if isElsewhere || isOlder {
        // A file that is put back in its place leaves no other state behind.
        let isGone =
          recorded.place.machine == place.machine
          && (recorded.place.path == place.path
            || !FileManager.default.fileExists(atPath: recorded.place.path))
        return try transaction(database) {
          try begin(
            ClientRegistry(database), binding, isElsewhere ? .copied : .restored,
            isAncestorGone: isGone, place: place, options, database)
        }
      }
      let token = recorded.token(in: places.folder)
      if recorded.place == place, token.map({ tokens == [$0] }) ?? true { return nil }
    }
    let token = try transaction(database) {
      try settle(place, of: binding.client, former: recorded, options, database)
    }
    try keep(token, of: binding.client, options)
    return nil
  }

  /// Draws a new token, so that an older state of the store can be recognized. Call it before
  /// something is published.
  package func renewToken() throws {
    guard let places = options.places else { return }
    let client = binding.client
    let place = try places.place(of: path)
    let token = try write { session in
      try Self.settle(
        place, of: client, former: Self.record(session.database), options, session.database)
    }
    try Self.keep(token, of: client, options)
  }

  /// Records the place and a new token, in the store and outside of it. The former token stays
  /// valid until ``keep(_:of:_:)``, which follows the commit. Returns the token; `nil` if it could
  /// not be stored outside.
  ///
  /// - Parameter former: The former record of the same client.
  static func settle(
    _ place: StorePlace, of client: ClientIdentifier, former: PlaceRecord?, _ options: StoreOptions,
    _ database: Database
  ) throws -> String? {
    guard let places = options.places else { return nil }
    let token = Base32.encode(Bits128(high: options.random(), low: options.random()).bytes)
    let known = former?.token(in: places.folder)
    let held = try places.tokens(of: client.description) ?? []
    let isKept = try places.keep([known, token].compactMap(\.self), of: client.description)
    var record = former?.moved(to: place) ?? PlaceRecord(place: place)
    // If no token can be stored, the former ones stay valid.
    if isKept, let folder = places.folder { record.note(token, in: folder, held: held) }
    try MetaTable.write(.place, to: Array(JSONEncoder().encode(record)), database)
    return isKept ? token : nil
  }

  static func keep(_ token: String?, of client: ClientIdentifier, _ options: StoreOptions) throws {
    guard let token, let places = options.places else { return }
    _ = try places.keep([token], of: client.description)
  }

  private static func record(_ database: Database) throws -> PlaceRecord? {
    try MetaTable.value(.place, database)
  }

  private static func transaction<Result>(
    _ database: Database, _ body: () throws -> Result
  ) throws -> Result {
    var result: Result?
    try database.inTransaction(.immediate) {
      result = try body()
      return .commit
    }
    guard let result else {
      throw DatabaseError(resultCode: .SQLITE_INTERNAL, message: "no result")
    }
    return result
  }
}
