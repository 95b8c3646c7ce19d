import Foundation
import SyncModel
import SyncStore

/// What this module keeps in the store, under fixed keys, as JSON.
struct StoreRecords {
  /// The last RecentSync of this store. It is kept before it is published,
  /// so that the same bytes are published again if that was interrupted.
  struct OwnMarker: Codable {
    /// The name of its file.
    var name: String
    /// Its file.
    var bytes: Data
    /// What its bytes decode to.
    var content: RecentSyncFile
  }

  /// The newest RecentSync of another client that was seen.
  struct SeenMarker: Codable, Hashable {
    var revision: UInt64
    var changeHead: UInt64
    var commandHead: UInt64
  }

  /// The least numbers of a client's files that were not vacuumed.
  struct Kept: Codable, Hashable {
    var changeSets: UInt64 = 1
    var commands: UInt64 = 1
  }

  /// Where the store stood at its last housekeeping.
  struct Vacuumed: Codable, Hashable {
    /// The number of its last change set.
    var head: UInt64
    /// How many change sets of others were applied.
    var applied: UInt64
  }

  /// A file of another client that is missing or damaged, and that this one
  /// waits for.
  struct Awaited: Codable, Hashable {
    var client: ClientIdentifier
    var number: UInt64
    var isCommand: Bool

    /// `nil` for a wait that does not end when a file is put back.
    init?(_ wait: SyncReport.Wait) {
      guard [.notArrived, .damaged, .unreadable].contains(wait.reason) else { return nil }
      (client, number, isCommand) = (wait.client, wait.number, wait.isCommand)
    }
  }

  /// The files that this client waits for.
  struct Waits: Codable, Hashable {
    /// At its last synchronization.
    var last: Set<Awaited> = []
    /// Those that its last marker names.
    var said: Set<Awaited> = []
  }

  /// For how long a client was not seen to do anything.
  struct Absence: Codable, Hashable {
    /// Its newest marker.
    var revision: UInt64
    /// The time that went by between synchronizations of this store.
    var milliseconds: Int64
    /// How many synchronizations that were.
    var count: Int
    /// When the last of them was, by the clock here.
    var last: Int64
  }

  /// A generation that this store was in, where clients may have left what no
  /// device applies any more.
  struct FormerGeneration: Codable, Hashable {
    var generation: IntegrityKey
    /// By client, the number up to which the present generation contains all
    /// that it has published there, as far as it is known here.
    var contained: [String: UInt64]
    /// By client, the least number that was not vacuumed.
    var lowestKept: [String: UInt64]
    /// By client that was removed, the last number to take.
    var cuts: [String: UInt64]
    /// Whether its folder was looked through.
    var isLookedThrough = false
  }

  /// Whole stores that are intact files and of no use, by their paths.
  func unsound() throws -> [String] { try value(.unsound) ?? [] }

  /// Keeps which whole stores are of no use.
  func keep(unsound: some Sequence<String>) throws { try keep(Array(unsound), .unsound) }

  /// The change sets of others that could not be applied at the last
  /// synchronization.
  func refused() throws -> [SyncReport.Wait] { try value(.refused) ?? [] }

  /// Keeps which change sets could not be applied.
  func keep(refused: [SyncReport.Wait]) throws {
    guard !refused.isEmpty else { return try store.setRecord(Key.refused.rawValue, to: nil) }
    try keep(refused, .refused)
  }

  /// The clients of this generation that this store was before.
  struct Ancestors: Codable, Hashable {
    var clients: [ClientIdentifier] = []
    /// By client, the number up to which all that it has published is in this
    /// store.
    var contained: [String: UInt64] = [:]
    /// Those whose folders were looked through.
    var lookedThrough: [ClientIdentifier] = []
  }

  /// A generation that the store has left, and what it left in it.
  struct FormerLife: Codable, Hashable {
    var document: DocumentName
    var generation: IntegrityKey
    /// The client that the store was in it.
    var client: ClientIdentifier
    /// The other members.
    var members: [ClientIdentifier]
    /// The clients that were retired.
    var retired: [ClientIdentifier]
    /// The retired clients after which this one clears up, and the numbers up
    /// to which their change sets count.
    var clearing: [String: UInt64]
  }

  private enum Key: String, CaseIterable {
    case setUp, seenMarkers, wholeStores, readMarkers, retiredKept, absences, unverified, replaced,
      reset, mergesInto, ancestors, formerGenerations, asked, refused, unsound,
      rebootstrap, formerLives, answered
    // The last marker of the client that the store was, until it is among the
    // seen ones.
    case formerMarker = "former.marker"
    // Records of the client are removed when the store becomes another one.
    case rejoins = "client.rejoins"
    case unfinished = "client.unfinished"
    case ownMarker = "client.marker"
    case kept = "client.kept"
    case segments = "client.segments"
    case housekeeping = "client.housekeeping"
    case waits = "client.waits"
  }

  /// The records that a store drops when it begins another life of its
  /// document.
  static var ofOneLife: [String] { Key.allCases.map(\.rawValue) }

  /// The records that a store drops when it begins another generation.
  static var ofOneGeneration: [String] {
    ofOneLife.filter { key in
      ![Key.formerGenerations, .formerLives].contains { $0.rawValue == key }
    }
  }

  let store: LocalStore
  private let held: HeldValues?

  /// - Parameter held: Holds those values that one synchronization asks for several times.
  init(_ store: LocalStore, held: HeldValues? = nil) {
    self.store = store
    self.held = held
  }

  /// Whether the set-up of the store was completed.
  func isSetUp() throws -> Bool { try store.record(Key.setUp.rawValue) != nil }

  /// Notes that the set-up is complete.
  func noteSetUp() throws { try store.setRecord(Key.setUp.rawValue, to: [1]) }

  /// The last RecentSync of this store; `nil` before the first.
  func ownMarker() throws -> OwnMarker? { try holding(.ownMarker) { try value(.ownMarker) } }

  /// Keeps a RecentSync that is about to be published.
  func keep(_ marker: OwnMarker) throws {
    try keep(marker, .ownMarker)
    hold(marker as OwnMarker?, .ownMarker)
  }

  /// The newest markers of the others.
  ///
  /// A store that became a new client while another state of it may go on as
  /// the former one has seen the last marker of that client: it was its own.
  func seenMarkers() throws -> [ClientIdentifier: SeenMarker] {
    var seen: [ClientIdentifier: SeenMarker] = try byClient(.seenMarkers)
    guard let former: OwnMarker = try value(.formerMarker) else { return seen }
    let content = former.content
    let revision = seen[content.client]?.revision ?? 0
    if content.generation == store.binding.generation, content.revision > revision {
      seen[content.client] = SeenMarker(
        revision: content.revision, changeHead: content.changeHead?.number ?? 0,
        commandHead: content.commandHead?.number ?? 0)
    }
    return seen
  }

  /// Keeps the newest markers of the others.
  func keep(_ seen: [ClientIdentifier: SeenMarker]) throws {
    try keep(byClient: seen, .seenMarkers)
    if try store.record(Key.formerMarker.rawValue) != nil {
      try store.setRecord(Key.formerMarker.rawValue, to: nil)
    }
  }

  /// The content of the others' newest markers that were read, without their
  /// waits.
  func readMarkers() throws -> [ClientIdentifier: RecentSyncFile] {
    try holding(.readMarkers) { try byClient(.readMarkers) }
  }

  /// Keeps the content of the others' markers.
  func keep(_ markers: [ClientIdentifier: RecentSyncFile]) throws {
    try keep(byClient: markers, .readMarkers)
    hold(markers, .readMarkers)
  }

  /// The least numbers of this client's files that were not vacuumed.
  func kept() throws -> Kept { try value(.kept) ?? Kept() }

  /// Keeps the least numbers of this client's files.
  func keep(_ kept: Kept) throws { try keep(kept, .kept) }

  /// The same for retired clients whose files this one vacuums.
  func retiredKept() throws -> [ClientIdentifier: Kept] { try byClient(.retiredKept) }

  /// Keeps the least numbers of retired clients' files.
  func keep(_ kept: [ClientIdentifier: Kept]) throws { try keep(byClient: kept, .retiredKept) }

  /// The segments that this store has made, or found whole.
  func segments() throws -> [RecentSyncFile.Segment] { try value(.segments) ?? [] }

  /// Keeps the segments that this store has found whole.
  func keep(_ segments: [RecentSyncFile.Segment]) throws { try keep(segments, .segments) }

  /// How often housekeeping has found a segment that no member has verified, by
  /// its hash.
  func unverified() throws -> [String: Int] { try value(.unverified) ?? [:] }

  /// Keeps how often segments were found that no member has verified.
  func keep(_ unverified: [String: Int]) throws { try keep(unverified, .unverified) }

  /// The last housekeeping; `nil` before the first.
  func housekeeping() throws -> Vacuumed? { try value(.housekeeping) }

  /// Keeps where the store stands at its housekeeping.
  func keep(_ housekeeping: Vacuumed) throws { try keep(housekeeping, .housekeeping) }

  /// The files that this client waits for.
  func waits() throws -> Waits { try holding(.waits) { try value(.waits) ?? Waits() } }

  /// Keeps the files that this client waits for.
  func keep(_ waits: Waits) throws {
    try keep(waits, .waits)
    hold(waits, .waits)
  }

  /// By client, the last of its markers with waits that was answered.
  func answered() throws -> [ClientIdentifier: UInt64] { try byClient(.answered) }

  /// Keeps which markers were answered.
  func keep(answered: [ClientIdentifier: UInt64]) throws { try keep(byClient: answered, .answered) }

  /// For how long the others were not seen to do anything.
  func absences() throws -> [ClientIdentifier: Absence] { try byClient(.absences) }

  /// Keeps for how long the others were not seen.
  func keep(_ absences: [ClientIdentifier: Absence]) throws {
    try keep(byClient: absences, .absences)
  }

  /// Clients that this store was before, and that are to be retired.
  func replaced() throws -> [ClientIdentifier] { try value(.replaced) ?? [] }

  /// Keeps which former clients are to be retired.
  func keep(replaced: [ClientIdentifier]) throws { try keep(replaced, .replaced) }

  /// Whether this client may go on as a new one although it was removed.
  func rejoins() throws -> Bool { try store.record(Key.rejoins.rawValue) != nil }

  /// Notes that this client may go on as a new one although it was removed.
  func noteRejoins() throws { try store.setRecord(Key.rejoins.rawValue, to: [1]) }

  /// Whether this client may have unfinished files in the directory.
  func hasUnfinished() throws -> Bool { try store.record(Key.unfinished.rawValue) != nil }

  /// Notes whether this client may have unfinished files in the directory.
  func noteUnfinished(_ isSo: Bool) throws {
    try store.setRecordAlone(Key.unfinished.rawValue, to: isSo ? [1] : nil)
  }

  /// The generations that the store has left, with files that it has not
  /// vacuumed.
  func formerLives() throws -> [FormerLife] { try value(.formerLives) ?? [] }

  /// Keeps which generations the store has left.
  func keep(_ lives: [FormerLife]) throws { try keep(lives, .formerLives) }

  /// The exchange of the content, until it was reported.
  func rebootstrap() throws -> SyncReport.Rebootstrap? { try value(.rebootstrap) }

  /// Keeps an exchange of the content; `nil` once it was reported.
  func keep(_ rebootstrap: SyncReport.Rebootstrap?) throws {
    guard let rebootstrap else { return try store.setRecord(Key.rebootstrap.rawValue, to: nil) }
    try keep(rebootstrap, .rebootstrap)
  }

  /// The generation that the rows of the store may be merged into, although
  /// its document was deleted.
  func mergesInto() throws -> IntegrityKey? { try value(.mergesInto) }

  /// Notes that the rows of the store may be merged into a generation.
  func noteMerging(into generation: IntegrityKey) throws { try keep(generation, .mergesInto) }

  /// A reset of the document that was begun here and is not complete.
  func reset() throws -> SyncCommand.Reset? { try value(.reset) }

  /// Keeps a reset that was begun; `nil` for none.
  func keep(_ reset: SyncCommand.Reset?) throws {
    guard let reset else { return try store.setRecord(Key.reset.rawValue, to: nil) }
    try keep(reset, .reset)
  }

  /// The change sets for which a whole store was asked for, by client.
  func asked() throws -> [String: UInt64] { try value(.asked) ?? [:] }

  /// Keeps for which change sets a whole store was asked for.
  func keep(asked: [String: UInt64]) throws { try keep(asked, .asked) }

  /// The clients of this generation that this store was before.
  func ancestors() throws -> Ancestors {
    try holding(.ancestors) { try value(.ancestors) ?? Ancestors() }
  }

  /// Keeps which clients of this generation this store was before.
  func keep(_ ancestors: Ancestors) throws {
    try keep(ancestors, .ancestors)
    hold(ancestors, .ancestors)
  }

  /// What sets them, for a transaction that does more.
  static func record(of ancestors: Ancestors) throws -> [String: [UInt8]?] {
    [Key.ancestors.rawValue: try encoded(ancestors)]
  }

  /// The generations that this store was in before this one, in order.
  func formerGenerations() throws -> [FormerGeneration] {
    try holding(.formerGenerations) { try value(.formerGenerations) ?? [] }
  }

  /// Keeps which generations this store was in before.
  func keep(_ generations: [FormerGeneration]) throws {
    try keep(generations, .formerGenerations)
    hold(generations, .formerGenerations)
  }

  /// What sets them, for a transaction that does more.
  static func record(of generations: [FormerGeneration]) throws -> [String: [UInt8]?] {
    [Key.formerGenerations.rawValue: try encoded(generations)]
  }

  /// The whole stores that this store has found whole.
  func wholeStores() throws -> [RecentSyncFile.WholeStore] { try value(.wholeStores) ?? [] }

  /// Keeps the whole stores that this store has found whole.
  func keep(_ wholeStores: [RecentSyncFile.WholeStore]) throws {
    try keep(wholeStores, .wholeStores)
  }

  /// Notes that a store began from a whole store: its author is a member, also
  /// if the marker of that has not arrived.
  func noteAuthor(of header: WholeStoreHeader) throws {
    var seen = try seenMarkers()
    guard seen[header.client] == nil else { return }
    seen[header.client] = Self.author(of: header)
    try keep(seen)
  }

  /// What a whole store shows of its author, in place of a marker.
  private static func author(of header: WholeStoreHeader) -> SeenMarker {
    SeenMarker(
      revision: 0, changeHead: header.vector.number(of: header.client),
      commandHead: header.commands.number(of: header.client))
  }

  /// The records of a store that has taken over a whole store, which counts
  /// as found whole.
  ///
  /// - Parameters:
  ///   - found: The whole store.
  ///   - client: The client that the store is.
  ///   - others: What it has found whole before; `nil` if the whole store is of
  ///     another generation, in which nothing is known of the other clients.
  ///   - former: The generations that it was in before.
  static func rebootstrapped(
    from header: WholeStoreHeader, found: RecentSyncFile.WholeStore, by client: ClientIdentifier,
    keeping others: [RecentSyncFile.WholeStore]?, former: [FormerGeneration]? = nil
  ) throws -> [String: [UInt8]?] {
    let kept = (others ?? []).filter { $0.hash != found.hash }.suffix(7)
    var records: [String: [UInt8]?] = [
      Key.wholeStores.rawValue: try encoded(kept + [found])
    ]
    if others == nil {
      for key in Key.allCases
      where ![.setUp, .wholeStores, .formerLives, .unfinished].contains(key) {
        records.updateValue(nil, forKey: key.rawValue)
      }
      if header.client != client {
        let seen = [header.client.description: author(of: header)]
        records[Key.seenMarkers.rawValue] = try encoded(seen)
      }
    }
    if let former { records[Key.formerGenerations.rawValue] = try encoded(former) }
    return records
  }

  // MARK: Verifying

  /// The keys of the records that cannot be decoded, and why.
  static func damage(in records: [String: [UInt8]]) -> [(key: String, reason: String)] {
    Key.allCases.compactMap { key in
      guard let bytes = records[key.rawValue] else { return nil }
      do {
        try check(key, bytes)
        return nil
      } catch {
        return (key.rawValue, "\(error)")
      }
    }
  }

  private static func check(_ key: Key, _ bytes: [UInt8]) throws {
    func decode<Value: StoredValue>(_ type: Value.Type) throws {
      _ = try StoredJSON.read(type, from: bytes)
    }
    switch key {
    // Their presence is all their content.
    case .setUp, .rejoins, .unfinished: return
    case .seenMarkers: try decode([String: SeenMarker].self)
    case .wholeStores: try decode([RecentSyncFile.WholeStore].self)
    case .readMarkers: try decode([String: RecentSyncFile].self)
    case .retiredKept: try decode([String: Kept].self)
    case .absences: try decode([String: Absence].self)
    case .unverified: try decode([String: Int].self)
    case .replaced: try decode([ClientIdentifier].self)
    case .reset: try decode(SyncCommand.Reset.self)
    case .mergesInto: try decode(IntegrityKey.self)
    case .ancestors: try decode(Ancestors.self)
    case .formerGenerations: try decode([FormerGeneration].self)
    case .asked: try decode([String: UInt64].self)
    case .refused: try decode([SyncReport.Wait].self)
    case .unsound: try decode([String].self)
    case .rebootstrap: try decode(SyncReport.Rebootstrap.self)
    case .formerLives: try decode([FormerLife].self)
    case .ownMarker, .formerMarker: try decode(OwnMarker.self)
    case .kept: try decode(Kept.self)
    case .segments: try decode([RecentSyncFile.Segment].self)
    case .housekeeping: try decode(Vacuumed.self)
    case .waits: try decode(Waits.self)
    case .answered: try decode([String: UInt64].self)
    }
  }

  /// The last RecentSync of a store, from what it has kept; `nil` before the
  /// first, or if it cannot be decoded.
  static func ownMarker(in records: [String: [UInt8]]) -> OwnMarker? {
    guard let bytes = records[Key.ownMarker.rawValue] else { return nil }
    do {
      return try StoredJSON.read(from: bytes)
    } catch {
      // ``damage(in:)`` reports it.
      return nil
    }
  }

  /// The change sets of others that a store could not apply, from what it has
  /// kept; none if that cannot be decoded.
  static func refused(in records: [String: [UInt8]]) -> [SyncReport.Wait] {
    guard let bytes = records[Key.refused.rawValue] else { return [] }
    do {
      return try StoredJSON.read(from: bytes)
    } catch {
      // ``damage(in:)`` reports it.
      return []
    }
  }

  /// A value that is held, or that is read now.
  private func holding<Value: Sendable>(
    _ key: Key, _ read: () throws -> Value
  ) throws -> Value {
    guard let held else { return try read() }
    return try held.value(key.rawValue, of: store.binding, read)
  }

  /// Holds a value that was written.
  private func hold(_ value: some Sendable, _ key: Key) {
    held?.hold(value, key.rawValue, of: store.binding)
  }

  private func value<Value: StoredValue>(_ key: Key) throws -> Value? {
    try store.record(key.rawValue).map {
      try StoredJSON.read(from: $0, of: "docsync_record", key: key.rawValue, path: store.path)
    }
  }

  private func byClient<Value: StoredValue>(_ key: Key) throws -> [ClientIdentifier: Value] {
    let texts: [String: Value] = try value(key) ?? [:]
    return Dictionary(
      texts.compactMap { text, value in ClientIdentifier(text).map { ($0, value) } },
      uniquingKeysWith: { first, _ in first })
  }

  private func keep<Value: Encodable>(
    byClient values: [ClientIdentifier: Value], _ key: Key
  ) throws {
    let texts = values.map { ($0.key.description, $0.value) }
    try keep(Dictionary(uniqueKeysWithValues: texts), key)
  }

  private func keep(_ value: some Encodable, _ key: Key) throws {
    try store.setRecord(key.rawValue, to: Self.encoded(value))
  }

  private static func encoded(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(value))
  }
}
