import Foundation
import GRDB
import SyncModel

/// The place and the token by which a store notices that its file was copied, or put back from a backup.
extension StoreIdentity {
  /// Makes the store a new client if it is in another place than before, or older than it was.
  /// Otherwise, records the place and the token if they changed.
  func check(_ binding: StoreBinding) throws -> NewClient? {
    guard let places = options.places else { return nil }
    let place = try places.place(of: path)
    let recorded = try recordedPlace()
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
        return try database.transaction(.immediate) {
          try begin(
            isElsewhere ? .copied : .restored, after: binding, isAncestorGone: isGone,
            ClientRegistry(database))
        }
      }
      let token = recorded.token(in: places.folder)
      if recorded.place == place, token.map({ tokens == [$0] }) ?? true { return nil }
    }
    let token = try database.transaction(.immediate) {
      try settle(as: binding.client, former: recorded)
    }
    try options.keep(token, of: binding.client)
    return nil
  }

  func recordedPlace() throws -> PlaceRecord? { try MetaTable.value(.place, database) }

  /// Records the place and a new token, in the store and outside of it. The former token stays
  /// valid until ``StoreOptions/keep(_:of:)``, which follows the commit. Returns the token; `nil` if
  /// it could not be stored outside.
  ///
  /// - Parameter former: The former record of the same client.
  func settle(as client: ClientIdentifier, former: PlaceRecord?) throws -> String? {
    guard let places = options.places else { return nil }
    let place = try places.place(of: path)
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
}

extension StoreOptions {
  /// Makes a token the only valid one of a client's store.
  func keep(_ token: String?, of client: ClientIdentifier) throws {
    guard let token else { return }
    _ = try places?.keep([token], of: client.description)
  }

  /// Removes the tokens of a client: no store is that client any more.
  func forgetTokens(of client: ClientIdentifier) throws {
    _ = try places?.keep([], of: client.description)
  }
}
