import Foundation
import SyncModel
import SyncStore

/// The records of this module in the store, under fixed keys, as JSON.
struct StoreRecords {
  /// The records whose presence is all their content.
  static var withoutContent: [String] {
    Key.allCases.filter { $0.type == nil }.map(\.rawValue)
  }

  /// The records that a store drops when its document was deleted and is
  /// created again.
  static var ofOneLife: [String] { Key.allCases.map(\.rawValue) }

  /// The records that a store drops when it begins another generation.
  static var ofOneGeneration: [String] {
    ofOneLife.filter { key in
      ![Key.formerGenerations, .formerLives].contains { $0.rawValue == key }
    }
  }

  let store: LocalStore
  private let held: HeldValues?

  /// - Parameter held: Holds the values that one synchronization reads several
  ///   times.
  init(_ store: LocalStore, held: HeldValues? = nil) {
    self.store = store
    self.held = held
  }

  /// Whether the set-up of the store was completed.
  func isSetUp() throws -> Bool { try store.record(Self.setUpKey) != nil }

  /// Whether this client has uploaded a whole store, as far as the store knows.
  func hasUploaded() throws -> Bool {
    try wholeStores().contains { $0.client == store.binding.client }
  }

  /// Returns the same for a store whose set-up is not complete and that may not be possible to open.
  static func hasUploaded(storeAt path: String) throws -> Bool {
    try LocalStore.look(at: path, record: Key.wholeStores.rawValue).record != nil
  }

  /// The key of the record of a complete set-up.
  static let setUpKey = Key.setUp.rawValue

  /// Records that the set-up is complete.
  func noteSetUp() throws { try store.setRecord(Key.setUp.rawValue, to: [1]) }

  /// The last RecentSync of this store; `nil` before the first.
  func ownMarker() throws -> OwnMarker? { try holding(.ownMarker) { try value(.ownMarker) } }

  /// Records a RecentSync before it is published.
  func keep(_ marker: OwnMarker) throws {
    try keep(marker, .ownMarker)
    hold(marker as OwnMarker?, .ownMarker)
  }

  /// The newest markers of the other clients.
  ///
  /// If the store became a new client while another state of it may continue as
  /// the former one, it has seen that client's last marker, which was its own.
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

  func keep(_ seen: [ClientIdentifier: SeenMarker]) throws {
    try keep(byClient: seen, .seenMarkers)
    if try store.record(Key.formerMarker.rawValue) != nil {
      try store.setRecord(Key.formerMarker.rawValue, to: nil)
    }
  }

  /// The content of the others' newest markers that this store has read,
  /// without their waits.
  func readMarkers() throws -> [ClientIdentifier: RecentSyncFile] {
    try holding(.readMarkers) { try byClient(.readMarkers) }
  }

  func keep(_ markers: [ClientIdentifier: RecentSyncFile]) throws {
    try keep(byClient: markers, .readMarkers)
    hold(markers, .readMarkers)
  }

  /// The least numbers of this client's files that were not vacuumed.
  func kept() throws -> Kept { try value(.kept) ?? Kept() }

  func keep(_ kept: Kept) throws { try keep(kept, .kept) }

  /// The least numbers that were not vacuumed, of the retired clients whose
  /// files this client vacuums.
  func retiredKept() throws -> [ClientIdentifier: Kept] { try byClient(.retiredKept) }

  func keep(_ kept: [ClientIdentifier: Kept]) throws { try keep(byClient: kept, .retiredKept) }

  /// The segments that this store has made or verified.
  func segments() throws -> [RecentSyncFile.Segment] { try value(.segments) ?? [] }

  func keep(_ segments: [RecentSyncFile.Segment]) throws { try keep(segments, .segments) }

  /// By the hash of a segment, how often a vacuum has found that no member has
  /// verified it.
  func unverified() throws -> [String: Int] { try value(.unverified) ?? [:] }

  func keep(_ unverified: [String: Int]) throws { try keep(unverified, .unverified) }

  /// The state at the last vacuum; `nil` before the first.
  func housekeeping() throws -> Vacuumed? { try value(.housekeeping) }

  func keep(_ housekeeping: Vacuumed) throws { try keep(housekeeping, .housekeeping) }

  /// What this client waits for.
  func waits() throws -> Waits { try holding(.waits) { try value(.waits) ?? Waits() } }

  func keep(_ waits: Waits) throws {
    try keep(waits, .waits)
    hold(waits, .waits)
  }

  /// By client, the revision of its last marker with waits that this client has
  /// answered.
  func answered() throws -> [ClientIdentifier: UInt64] { try byClient(.answered) }

  func keep(answered: [ClientIdentifier: UInt64]) throws { try keep(byClient: answered, .answered) }

  /// By client, the time for which it was absent.
  func absences() throws -> [ClientIdentifier: Absence] { try byClient(.absences) }

  func keep(_ absences: [ClientIdentifier: Absence]) throws {
    try keep(byClient: absences, .absences)
  }

  /// The former clients of this store that are to be retired.
  func replaced() throws -> [ClientIdentifier] { try value(.replaced) ?? [] }

  func keep(replaced: [ClientIdentifier]) throws { try keep(replaced, .replaced) }

  /// Whether this client may continue as a new one although it was removed.
  func rejoins() throws -> Bool { try store.record(Key.rejoins.rawValue) != nil }

  /// Records that this client may continue as a new one although it was
  /// removed.
  func noteRejoins() throws { try store.setRecord(Key.rejoins.rawValue, to: [1]) }

  /// Whether the store has gone over to another generation, and is still the client that it was in
  /// the former one.
  func hasGoneOver() throws -> Bool { try store.record(Key.wentOver.rawValue) != nil }

  /// Whether this client may have unfinished files in the directory.
  func hasUnfinished() throws -> Bool { try store.record(Key.unfinished.rawValue) != nil }

  /// Notes whether this client may have unfinished files in the directory.
  func noteUnfinished(_ isSo: Bool) throws {
    try store.setRecordAlone(Key.unfinished.rawValue, to: isSo ? [1] : nil)
  }

  /// The generations that the store has left, with files that it has not
  /// vacuumed.
  func formerLives() throws -> [FormerLife] { try value(.formerLives) ?? [] }

  func keep(_ lives: [FormerLife]) throws { try keep(lives, .formerLives) }

  /// The exchange of content that no report contains yet.
  func rebootstrap() throws -> SyncReport.Rebootstrap? { try value(.rebootstrap) }

  /// Records an exchange of content; `nil` once a report contains it.
  func keep(_ rebootstrap: SyncReport.Rebootstrap?) throws {
    guard let rebootstrap else { return try store.setRecord(Key.rebootstrap.rawValue, to: nil) }
    try keep(rebootstrap, .rebootstrap)
  }

  /// The generation into which the rows of the store may be merged, although
  /// its document was deleted.
  func mergesInto() throws -> IntegrityKey? { try value(.mergesInto) }

  /// Records that the rows of the store may be merged into a generation.
  func noteMerging(into generation: IntegrityKey) throws { try keep(generation, .mergesInto) }

  /// The incomplete reset of the document that this store began.
  func reset() throws -> SyncCommand.Reset? { try value(.reset) }

  /// Records a reset that was begun; `nil` for none.
  func keep(_ reset: SyncCommand.Reset?) throws {
    guard let reset else { return try store.setRecord(Key.reset.rawValue, to: nil) }
    try keep(reset, .reset)
  }

  /// By client, the change set for which this store has asked for a whole
  /// store.
  func asked() throws -> [String: UInt64] { try value(.asked) ?? [:] }

  func keep(asked: [String: UInt64]) throws { try keep(asked, .asked) }

  /// The former clients of this store in this generation.
  func ancestors() throws -> Ancestors {
    try holding(.ancestors) { try value(.ancestors) ?? Ancestors() }
  }

  func keep(_ ancestors: Ancestors) throws {
    try keep(ancestors, .ancestors)
    hold(ancestors, .ancestors)
  }

  /// Makes the record of them, for a transaction that writes more.
  static func record(of ancestors: Ancestors) throws -> [String: [UInt8]?] {
    [Key.ancestors.rawValue: try encoded(ancestors)]
  }

  /// The former generations of this store, in order.
  func formerGenerations() throws -> [FormerGeneration] {
    try holding(.formerGenerations) { try value(.formerGenerations) ?? [] }
  }

  func keep(_ generations: [FormerGeneration]) throws {
    try keep(generations, .formerGenerations)
    hold(generations, .formerGenerations)
  }

  /// Makes the record of them, for a transaction that writes more.
  static func record(of generations: [FormerGeneration]) throws -> [String: [UInt8]?] {
    [Key.formerGenerations.rawValue: try encoded(generations)]
  }

  /// The whole stores that this store has made or verified.
  func wholeStores() throws -> [RecentSyncFile.WholeStore] { try value(.wholeStores) ?? [] }

  func keep(_ wholeStores: [RecentSyncFile.WholeStore]) throws {
    try keep(wholeStores, .wholeStores)
  }

  /// The paths of whole stores whose files are intact and whose databases are
  /// unusable.
  func unsound() throws -> [String] { try value(.unsound) ?? [] }

  func keep(unsound: some Sequence<String>) throws { try keep(Array(unsound), .unsound) }

  /// The change sets of others that could not be applied at the last
  /// synchronization.
  func refused() throws -> [SyncReport.Wait] { try value(.refused) ?? [] }

  func keep(refused: [SyncReport.Wait]) throws {
    guard !refused.isEmpty else { return try store.setRecord(Key.refused.rawValue, to: nil) }
    try keep(refused, .refused)
  }

  /// Returns the value that is held, or reads it.
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

  func value<Value: StoredValue>(_ key: Key) throws -> Value? {
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

  static func encoded(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(value))
  }
}
