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
    /// What it says.
    var content: RecentSyncFile
  }

  /// The newest RecentSync of another client that was seen.
  struct SeenMarker: Codable, Hashable {
    var revision: UInt64
    var changeHead: UInt64
  }

  /// How far another client has applied this store's change sets, by a
  /// RecentSync that was read.
  struct Acknowledgement: Codable, Hashable {
    /// The revision that was read.
    var revision: UInt64
    /// The last change set of this store that it names; `nil` if it does not
    /// know of any.
    var applied: VersionVector.Entry?
  }

  private enum Key: String, CaseIterable {
    case setUp, seenMarkers, wholeStores
    // Those of the client go when the store becomes another one.
    case ownMarker = "client.marker"
    case acknowledgements = "client.acknowledgements"
  }

  /// What a store forgets that begins another generation.
  static var ofOneGeneration: [String] { Key.allCases.map(\.rawValue) }

  let store: LocalStore

  init(_ store: LocalStore) { self.store = store }

  /// Whether the set-up of the store was completed.
  func isSetUp() throws -> Bool { try store.record(Key.setUp.rawValue) != nil }

  /// Notes that the set-up is complete.
  func noteSetUp() throws { try store.setRecord(Key.setUp.rawValue, to: [1]) }

  /// The last RecentSync of this store; `nil` before the first.
  func ownMarker() throws -> OwnMarker? { try value(.ownMarker) }

  /// Keeps a RecentSync that is about to be published.
  func keep(_ marker: OwnMarker) throws { try keep(marker, .ownMarker) }

  /// The newest markers of the others.
  func seenMarkers() throws -> [ClientIdentifier: SeenMarker] {
    let texts: [String: SeenMarker] = try value(.seenMarkers) ?? [:]
    return Dictionary(
      texts.compactMap { text, seen in ClientIdentifier(text).map { ($0, seen) } },
      uniquingKeysWith: { first, _ in first })
  }

  /// Keeps the newest markers of the others.
  func keep(_ seen: [ClientIdentifier: SeenMarker]) throws {
    let texts = seen.map { ($0.key.description, $0.value) }
    try keep(Dictionary(uniqueKeysWithValues: texts), .seenMarkers)
  }

  /// How far the others have applied this store's change sets.
  func acknowledgements() throws -> [ClientIdentifier: Acknowledgement] {
    let texts: [String: Acknowledgement] = try value(.acknowledgements) ?? [:]
    return Dictionary(
      texts.compactMap { text, said in ClientIdentifier(text).map { ($0, said) } },
      uniquingKeysWith: { first, _ in first })
  }

  /// Keeps how far the others have applied this store's change sets.
  func keep(_ acknowledgements: [ClientIdentifier: Acknowledgement]) throws {
    let texts = acknowledgements.map { ($0.key.description, $0.value) }
    try keep(Dictionary(uniqueKeysWithValues: texts), .acknowledgements)
  }

  /// The whole stores that this store has found whole.
  func wholeStores() throws -> [RecentSyncFile.WholeStore] { try value(.wholeStores) ?? [] }

  /// Keeps the whole stores that this store has found whole.
  func keep(_ wholeStores: [RecentSyncFile.WholeStore]) throws {
    try keep(wholeStores, .wholeStores)
  }

  private func value<Value: Decodable>(_ key: Key) throws -> Value? {
    guard let bytes = try store.record(key.rawValue) else { return nil }
    return try JSONDecoder().decode(Value.self, from: Data(bytes))
  }

  private func keep(_ value: some Encodable, _ key: Key) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try store.setRecord(key.rawValue, to: Array(encoder.encode(value)))
  }
}
