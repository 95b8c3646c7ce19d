import SyncModel

/// A RecentSync: the change sets and commands that a client has published and
/// applied.
struct RecentSyncFile: Hashable, Codable {
  /// A whole store that the client has uploaded, or has downloaded and
  /// verified.
  struct WholeStore: Hashable, Codable {
    var client: ClientIdentifier
    var number: UInt64
    var hash: ContentHash
    /// The change sets that it contains.
    var vector: VersionVector
    /// The commands that it has processed.
    var commands: VersionVector
    /// The length of its file, in bytes.
    var byteCount: Int
  }

  /// A segment that the client has made, or has read and verified.
  struct Segment: Hashable, Codable {
    var client: ClientIdentifier
    var first: UInt64
    var last: UInt64
    var hash: ContentHash
  }

  /// A retired client, and which of its files are left.
  struct Retired: Hashable, Codable {
    var client: ClientIdentifier
    /// The number up to which its change sets are applied; `nil` while some
    /// member has not stopped.
    var cut: UInt64?
    /// The least numbers of its change sets and of its commands that were not
    /// vacuumed.
    var lowestKept: UInt64
    var lowestKeptCommand: UInt64
  }

  var root: RootIdentifier
  var document: DocumentName
  var generation: IntegrityKey
  var client: ClientIdentifier
  /// The revision, from 1; the highest counts.
  var revision: UInt64
  /// The hash of the client's previous marker.
  var previous: ContentHash?
  /// The client's last change set.
  var changeHead: VersionVector.Entry?
  /// The client's last command.
  var commandHead: VersionVector.Entry?
  /// The change sets of others that it has durably applied.
  var applied: VersionVector
  /// The commands that it has processed, including its own.
  var commandsApplied: VersionVector
  /// The members of the document as it knows them, including itself.
  var members: [ClientIdentifier]
  /// The whole stores that it has made or verified.
  var wholeStores: [WholeStore]
  /// The segments that it has made or verified.
  var segments: [Segment]
  /// The least number of its change sets that was not vacuumed.
  var lowestKept: UInt64
  /// The least number of its commands that was not vacuumed.
  var lowestKeptCommand: UInt64
  /// The retired clients that it knows, in order.
  var retired: [Retired]
  /// The change sets and commands that it waits for.
  var waiting: [SyncReport.Wait]
  var readerVersion = FormatVersion.reader
  /// The time by its own clock, in milliseconds since 1970; nothing depends on
  /// it.
  var milliseconds: Int64
}

extension RecentSyncFile {
  /// Returns the clients that a marker lists as retired, unless the author of
  /// another marker has processed at least the same commands and does not list
  /// them: an absent client that has shown itself is back.
  ///
  /// - Parameter countsOwn: Whether a client's own marker shows that it is
  ///   back. A client that has left has such a marker, too.
  static func retired(
    by markers: [RecentSyncFile], countsOwn: Bool = true
  ) -> Set<ClientIdentifier> {
    let said = markers.map { marker in
      Set(marker.retired.map(\.client)).subtracting([marker.client])
    }
    var retired: Set<ClientIdentifier> = []
    for (marker, clients) in zip(markers, said) where !clients.isSubset(of: retired) {
      // Computed once for all clients that one marker lists.
      let knowing = markers.indices.filter {
        markers[$0].commandsApplied.contains(marker.commandsApplied)
      }
      for client in clients where !retired.contains(client) {
        let isTakenBack = knowing.contains { other in
          (countsOwn || markers[other].client != client) && !said[other].contains(client)
        }
        if !isTakenBack { retired.insert(client) }
      }
    }
    return retired
  }
}

// Files of other devices may contain any numbers. Decoding limits those that
// are counted or added.

extension RecentSyncFile.WholeStore {
  /// The greatest length of a whole store's file.
  static let greatestByteCount = 1 << 40

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    client = try container.decode(ClientIdentifier.self, forKey: .client)
    number = try container.decode(UInt64.self, forKey: .number)
    hash = try container.decode(ContentHash.self, forKey: .hash)
    vector = try container.decode(VersionVector.self, forKey: .vector)
    commands = try container.decode(VersionVector.self, forKey: .commands)
    byteCount = try container.decode(Int.self, forKey: .byteCount)
    guard (0...Self.greatestByteCount).contains(byteCount) else {
      throw DecodingError.dataCorruptedError(
        forKey: .byteCount, in: container, debugDescription: "\(byteCount) is no length of a file")
    }
  }
}

extension RecentSyncFile.Segment {
  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    client = try container.decode(ClientIdentifier.self, forKey: .client)
    first = try container.decode(UInt64.self, forKey: .first)
    last = try container.decode(UInt64.self, forKey: .last)
    hash = try container.decode(ContentHash.self, forKey: .hash)
    guard first <= last, last <= VersionVector.greatestNumber else {
      throw DecodingError.dataCorruptedError(
        forKey: .last, in: container,
        debugDescription: "no segment has the numbers \(first) to \(last)")
    }
  }
}
