import SyncDirectory
import SyncModel
import SyncStore

/// The change sets that a store has published, and that the directory has lost by the time when a new store
/// replaces it.
///
/// The directory may have been restored from a backup. A store that goes on puts such files back itself.
struct LostChangeSets {
  /// A file that is published again, byte for byte.
  struct File {
    var path: RelativePath
    var bytes: [UInt8]
  }

  /// How many numbers that the store does not know are looked for. Damaged bookkeeping may name any number as the
  /// last one.
  private static let greatestCount = 100_000

  /// The files to publish again.
  private(set) var files: [File] = []
  /// The files that cannot be published again, since another state of the store has used their numbers. The new
  /// store writes their changes again, in this order.
  private(set) var returning: [[UInt8]] = []
  /// The numbers of those that neither the directory nor the new store's database has, and whose bytes the store
  /// does not have any more.
  private(set) var missing: [UInt64] = []

  /// Creates a value without any.
  init() {}

  /// Compares what a store has published with the directory.
  ///
  /// - Parameters:
  ///   - binding: The binding of the new store, which has the same generation.
  ///   - vector: The change sets that the new store begins with.
  init(
    of store: LocalStore, replacedBy binding: StoreBinding, with vector: VersionVector,
    _ files: SharedFiles
  ) throws {
    let client = store.binding.client
    let layout = DirectoryLayout.Document(binding.document).generation(binding.generation)
    let listed = Listed(
      try files.listIfPresent(layout.syncChanges(of: client), as: ChangeFileName.self))
    let contained = vector.number(of: client)
    let lowest = min(try StoreRecords(store).kept().changeSets, contained + 1)
    let sealed = try store.sealedChangeSets()
    var isFork = false
    for sealed in sealed where sealed.isPublished && sealed.number >= lowest {
      let name = ChangeSetName(number: sealed.number, hash: HashFragment(sealed.hash))
      if listed.hasOther(than: name) { isFork = true }
      guard !listed.has(name) else { continue }
      guard let bytes = try Self.bytes(of: sealed, in: store) else {
        if sealed.number > contained { missing.append(sealed.number) }
        continue
      }
      if isFork {
        returning.append(bytes)
      } else {
        self.files.append(File(path: layout.path(of: name, by: client), bytes: bytes))
      }
    }
    let known = Set(sealed.map(\.number))
    let numbers = contained..<max(contained, try store.head()?.number ?? 0)
    for number in numbers.prefix(Self.greatestCount)
    where !known.contains(number + 1) && !listed.has(number + 1) {
      missing.append(number + 1)
    }
    missing.sort()
  }

  /// The number of change sets that go on, as they were or written again.
  var restoredCount: Int { files.count + returning.count }

  /// Returns the bytes of a change set; `nil` if the store does not have them any more, or if they are damaged.
  private static func bytes(
    of sealed: SealedChangeSet, in store: LocalStore
  ) throws -> [UInt8]? {
    guard sealed.isKept else { return nil }
    let bytes = try store.sealedBytes(sealed.number, of: sealed.client)
    return store.hash(of: bytes) == sealed.hash ? bytes : nil
  }

  /// Publishes the files again, in the folder of the store's client.
  func putBack(by client: ClientIdentifier, _ files: SharedFiles) throws {
    for file in self.files {
      try files.publishReplacingDamaged(file.bytes, at: file.path, by: client)
    }
  }

  /// The change sets in the client's folder.
  private struct Listed {
    private var hashes: [UInt64: Set<HashFragment>] = [:]
    private var segments: [ClosedRange<UInt64>] = []

    init(_ names: [ChangeFileName]) {
      for name in names {
        switch name {
        case .changeSet(let name): hashes[name.number, default: []].insert(name.hash)
        case .segment(let name): segments.append(name.numbers)
        }
      }
    }

    /// Whether the folder has a change set of a number.
    func has(_ number: UInt64) -> Bool {
      hashes[number] != nil || segments.contains { $0.contains(number) }
    }

    func has(_ name: ChangeSetName) -> Bool {
      hashes[name.number]?.contains(name.hash) ?? false
        || segments.contains { $0.contains(name.number) }
    }

    /// Whether it has another change set of the same number.
    func hasOther(than name: ChangeSetName) -> Bool {
      !(hashes[name.number] ?? []).subtracting([name.hash]).isEmpty
    }
  }
}
