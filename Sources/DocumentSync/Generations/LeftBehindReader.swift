import SyncDirectory
import SyncModel
import SyncStore

/// Reads the change sets beyond the known ones in some clients' folders, in
/// causal order.
final class LeftBehindReader {
  fileprivate struct Folder {
    var claims: [UInt64: [ChangeSetName]] = [:]
    var segments: [SegmentName] = []
    /// The hash of the last change set that was read.
    var last: ContentHash?
    /// By number, the change sets to pass over, since they count.
    var counting: [UInt64: ContentHash] = [:]
    /// The next change set, once it is read.
    var next: ReceivedChangeSet?
    /// Why the next change set cannot be read.
    var wait: SyncReport.Wait?
  }

  /// How far the folders are read.
  struct Position {
    fileprivate var folders: [ClientIdentifier: Folder] = [:]
    /// By client, the number up to which everything is known or was read.
    fileprivate(set) var contained: [ClientIdentifier: UInt64]
  }

  private let files: SharedFiles
  private let layout: DirectoryLayout.Generation
  private let reader: ChangeFileReader
  private let lowestKept: [ClientIdentifier: UInt64]
  private let limits: [ClientIdentifier: UInt64]
  private(set) var position: Position
  /// Change sets that are not to be taken for now, by author. Its later ones
  /// wait for them.
  private var holds: [ClientIdentifier: SyncReport.Wait] = [:]

  /// Clients whose change sets are not awaited.
  var departed: Set<ClientIdentifier> = []

  /// - Parameters:
  ///   - lowestKept: The least number of a client that was not vacuumed. Lower
  ///     ones are not awaited.
  ///   - limits: The last number to read of a client.
  init(
    _ files: SharedFiles, binding: StoreBinding, generation: IntegrityKey,
    contained: [ClientIdentifier: UInt64], lowestKept: [ClientIdentifier: UInt64],
    limits: [ClientIdentifier: UInt64]
  ) {
    self.files = files
    position = Position(contained: contained)
    self.lowestKept = lowestKept
    self.limits = limits
    layout = DirectoryLayout.Document(binding.document).generation(generation)
    let header = SyncChangeSet.Header(
      root: binding.root, document: binding.document, generation: generation,
      client: binding.client, number: 0, previous: nil)
    reader = ChangeFileReader(
      files, header: header, layout: layout,
      segments: SegmentReader(files, header: header, layout: layout))
  }

  private var folders: [ClientIdentifier: Folder] { position.folders }
  /// By client, the number up to which everything is known or was read.
  var contained: [ClientIdentifier: UInt64] { position.contained }

  /// Goes back to where the reader was before it read change sets that were not
  /// taken.
  func goBack(to position: Position) { self.position = position }

  /// Returns the path of a change set's file, as it is if no segment has it.
  func path(of received: ReceivedChangeSet) -> RelativePath {
    let header = received.changeSet.header
    let name = ChangeSetName(number: header.number, hash: HashFragment(received.hash))
    return layout.path(of: name, by: header.client)
  }

  /// Leaves a change set, and the later ones of its author, where they are.
  func hold(_ wait: SyncReport.Wait) { holds[wait.client] = wait }

  func look(at clients: [ClientIdentifier]) throws {
    for client in clients {
      add(
        try files.listIfPresent(layout.syncChanges(of: client), as: ChangeFileName.self),
        of: client, to: Folder())
    }
  }

  /// Reads only a branch of a client's change sets.
  ///
  /// - Parameters:
  ///   - names: The content of the client's folder.
  ///   - number: The number before the branch, or the last that was read of it.
  ///   - last: The hash of that change set; `nil` if unknown.
  ///   - counting: By number, the change sets that are not part of the branch.
  func look(
    at names: [ChangeFileName], of client: ClientIdentifier, after number: UInt64,
    _ last: ContentHash?, besides counting: [UInt64: ContentHash]
  ) {
    position.contained[client] = number
    add(names, of: client, to: Folder(last: last, counting: counting))
  }

  private func add(_ names: [ChangeFileName], of client: ClientIdentifier, to folder: Folder) {
    var folder = folder
    for name in names where name.numbers.upperBound > contained[client] ?? 0 {
      switch name {
      case .changeSet(let name):
        guard folder.counting[name.number].map(name.hash.matches) != true else { continue }
        folder.claims[name.number, default: []].append(name)
      case .segment(let name): folder.segments.append(name)
      }
    }
    if !folder.claims.isEmpty || !folder.segments.isEmpty { position.folders[client] = folder }
  }

  /// The last change set that was read of a client.
  func last(of client: ClientIdentifier) -> VersionVector.Entry? {
    guard let number = contained[client], let hash = folders[client]?.last else { return nil }
    return VersionVector.Entry(number: number, hash: hash)
  }

  /// The number of change sets that were not read yet.
  var remainingCount: Int {
    folders.reduce(0) { sum, entry in
      let (client, folder) = entry
      var next = (contained[client] ?? 0) + 1
      let last = limits[client] ?? .max
      let claimed = folder.claims.keys.map { $0...$0 } + folder.segments.map(\.numbers)
      var count = 0
      for numbers in claimed.sorted(by: { $0.lowerBound < $1.lowerBound }) {
        let lower = max(next, numbers.lowerBound)
        let upper = min(last, numbers.upperBound)
        guard lower <= upper else { continue }
        count += (lower...upper).count
        next = upper + 1
      }
      return sum + count
    }
  }

  /// Returns the next change sets, each after those that it depends on; none if
  /// no more can be read.
  func next(_ count: Int, bytes: Int) throws -> [ReceivedChangeSet] {
    var found: [ReceivedChangeSet] = []
    var size = 0
    var isStuck = false
    while !isStuck {
      isStuck = true
      for client in folders.keys.sorted() {
        while found.count < count, size < bytes, let next = try next(of: client),
          missing(next.changeSet).isEmpty
        {
          found.append(next)
          size += max(next.bytes.count, next.changeSet.byteCount)
          position.contained[client] = next.changeSet.header.number
          position.folders[client]?.last = next.hash
          position.folders[client]?.next = nil
          isStuck = false
        }
      }
      if found.count >= count || size >= bytes { break }
    }
    return found
  }

  /// The first change set of each client that exists and cannot be taken yet.
  var waiting: [SyncReport.Wait] {
    folders.sorted { $0.key < $1.key }.compactMap { client, folder in
      guard let next = folder.next else { return folder.wait }
      if isHeld(next) { return holds[client] }
      let missing = missing(next.changeSet).sorted { $0.key < $1.key }
        .map { "change set \($0.value) of \($0.key)" }
      return SyncReport.Wait(
        client: client, number: next.changeSet.header.number, reason: .dependencies,
        message: "needs \(missing.joined(separator: ", "))",
        path: layout.syncChanges(of: client).description)
    }
  }

  private func missing(_ changeSet: SyncChangeSet) -> [ClientIdentifier: UInt64] {
    var missing: [ClientIdentifier: UInt64] = [:]
    for (client, entry) in changeSet.dependencies.entries
    where !departed.contains(client) && contained[client] ?? 0 < entry.number
      && entry.number >= lowestKept[client] ?? 1 && entry.number <= limits[client] ?? .max
    {
      missing[client] = entry.number
    }
    return missing
  }

  private func next(of client: ClientIdentifier) throws -> ReceivedChangeSet? {
    guard let next = try read(of: client), !isHeld(next) else { return nil }
    return next
  }

  private func isHeld(_ received: ReceivedChangeSet) -> Bool {
    let header = received.changeSet.header
    return holds[header.client].map { $0.number <= header.number } ?? false
  }

  /// Returns the next change set of a client if it can be read.
  private func read(of client: ClientIdentifier) throws -> ReceivedChangeSet? {
    guard var folder = folders[client] else { return nil }
    if let next = folder.next { return next }
    var number = (contained[client] ?? 0) + 1
    func segments() -> [SegmentName] { folder.segments.filter { $0.numbers.contains(number) } }
    let lowest = lowestKept[client] ?? 1
    if number < lowest, folder.claims[number] == nil, segments().isEmpty {
      let later = (Array(folder.claims.keys) + folder.segments.map(\.numbers.lowerBound))
        .filter { $0 > number }
      number = min(lowest, later.min() ?? lowest)
      folder.last = nil
    }
    let names = folder.claims[number, default: []].sorted()
    guard number <= limits[client] ?? .max, !names.isEmpty || !segments().isEmpty else {
      return nil
    }
    let outcome = try reader.read([
      ChangeFetchQueue.Item(client: client, number: number, names: names, segments: segments())
    ]).first
    let intact = (outcome?.intact ?? []).filter { received in
      (folder.last == nil || received.changeSet.header.previous == folder.last)
        && folder.counting[number] != received.hash
    }
    // If there are several, the one with the lowest hash counts, as everywhere.
    folder.next = intact.min {
      HashFragment($0.hash).description < HashFragment($1.hash).description
    }
    folder.wait = folder.next == nil ? outcome?.failure : nil
    position.folders[client] = folder
    return folder.next
  }
}
