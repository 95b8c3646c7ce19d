import SyncModel

/// `application.<root id>.json`, in the root.
package struct ApplicationName: DirectoryName {
  /// The shared directory's identifier.
  package var root: RootIdentifier
  /// Creates the name of a root's application file.
  package init(root: RootIdentifier) { self.root = root }
  /// The name.
  package var description: String { "application.\(root).json" }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard let parts = description.nameParts(3), parts[0] == "application", parts[2] == "json",
      let root = RootIdentifier(String(parts[1]))
    else { return nil }
    self.root = root
  }
}

/// `<client>.<revision>.json`, in ClientDevices.
package struct ClientDeviceName: DirectoryName {
  /// The client that describes itself.
  package var client: ClientIdentifier
  /// The revision of the description; the highest counts.
  package var revision: UInt64

  /// Creates a name from its parts.
  package init(client: ClientIdentifier, revision: UInt64) {
    self.client = client
    self.revision = revision
  }

  /// The name.
  package var description: String { "\(client).\(revision).json" }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard let parts = description.nameParts(3), parts[2] == "json",
      let client = ClientIdentifier(String(parts[0])), let revision = NameNumber.parse(parts[1])
    else { return nil }
    self.init(client: client, revision: revision)
  }
}

/// `generation.<ordinal>.<integrity key>.json`, in a document's folder.
///
/// Names are ordered by ordinal, then by descending key, so that the greatest name is that of the
/// generation that counts.
package struct GenerationName: DirectoryName, Comparable {
  /// The number of earlier generations of the document that the creator of this one knew.
  package var ordinal: UInt64
  /// The key of this generation.
  package var key: IntegrityKey

  /// Creates a name from its parts.
  package init(ordinal: UInt64, key: IntegrityKey) {
    self.ordinal = ordinal
    self.key = key
  }

  /// The name.
  package var description: String { "generation.\(ordinal).\(key).json" }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard let parts = description.nameParts(4), parts[0] == "generation", parts[3] == "json",
      let ordinal = NameNumber.parse(parts[1]), let key = IntegrityKey(String(parts[2]))
    else { return nil }
    self.init(ordinal: ordinal, key: key)
  }

  /// Returns whether `right` counts rather than `left`.
  package static func < (left: GenerationName, right: GenerationName) -> Bool {
    left.ordinal == right.ordinal ? left.key > right.key : left.ordinal < right.ordinal
  }
}

/// `deleted.<ordinal>.<client>.json`, in a document's folder.
package struct DeletedName: DirectoryName {
  /// The ordinal of the generation that was deleted.
  package var ordinal: UInt64
  /// The client that deleted it.
  package var client: ClientIdentifier

  /// Creates a name from its parts.
  package init(ordinal: UInt64, client: ClientIdentifier) {
    self.ordinal = ordinal
    self.client = client
  }

  /// The name.
  package var description: String { "deleted.\(ordinal).\(client).json" }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard let parts = description.nameParts(4), parts[0] == "deleted", parts[3] == "json",
      let ordinal = NameNumber.parse(parts[1]), let client = ClientIdentifier(String(parts[2]))
    else { return nil }
    self.init(ordinal: ordinal, client: client)
  }
}

/// `<client>.<change head>.<command head>.<revision>.<hash>`, in RecentSyncs.
///
/// The three numbers together have at most 24 digits, so that the name has
/// at most 64 characters; one change set a second for 30 years takes ten.
package struct MarkerName: DirectoryName {
  /// The client that published the marker.
  package var client: ClientIdentifier
  /// The number of its last change set; 0 before the first.
  package var changeHead: UInt64
  /// The number of its last command; 0 before the first.
  package var commandHead: UInt64
  /// The revision; the highest counts.
  package var revision: UInt64
  /// The fragment of the marker's own hash.
  package var hash: HashFragment

  /// Creates a name from its parts.
  package init(
    client: ClientIdentifier, changeHead: UInt64, commandHead: UInt64, revision: UInt64,
    hash: HashFragment
  ) {
    self.client = client
    self.changeHead = changeHead
    self.commandHead = commandHead
    self.revision = revision
    self.hash = hash
  }

  /// The name.
  package var description: String { "\(client).\(changeHead).\(commandHead).\(revision).\(hash)" }

  /// The revisions of waiting clients are multiples of this number.
  private static let interval: UInt64 = 16

  /// Whether the client waits for files of other clients that are missing or damaged. The revision
  /// in the name shows it, so that no device reads the marker for it.
  package var saysWaiting: Bool { revision % Self.interval == 0 }

  /// Returns the next revision, for a marker of a client that waits or does not.
  package static func revision(after last: UInt64, saysWaiting: Bool) -> UInt64 {
    let next = last + 1
    guard !saysWaiting else { return last - last % interval + interval }
    return next % interval == 0 ? next + 1 : next
  }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard let parts = description.nameParts(5), let client = ClientIdentifier(String(parts[0])),
      let changeHead = NameNumber.parse(parts[1]), let commandHead = NameNumber.parse(parts[2]),
      let revision = NameNumber.parse(parts[3]), let hash = HashFragment(String(parts[4]))
    else { return nil }
    self.init(
      client: client, changeHead: changeHead, commandHead: commandHead, revision: revision,
      hash: hash)
  }
}

/// A name of a number, a hash and an extension: `<number>.<hash>.<extension>`.
package protocol NumberedFileName: DirectoryName, Comparable {
  /// The text after the last dot.
  static var pathExtension: String { get }
  /// The number among the author's files of this kind, from 1.
  var number: UInt64 { get }
  /// The fragment of the file's hash.
  var hash: HashFragment { get }
  /// Creates a name from its parts.
  init(number: UInt64, hash: HashFragment)
}

extension NumberedFileName {
  /// The name.
  package var description: String { "\(number).\(hash).\(Self.pathExtension)" }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard let parts = description.nameParts(3), parts[2] == Self.pathExtension,
      let number = NameNumber.parse(parts[0], from: 1), let hash = HashFragment(String(parts[1]))
    else { return nil }
    self.init(number: number, hash: hash)
  }

  /// Orders names by number, then by hash.
  package static func < (left: Self, right: Self) -> Bool {
    (left.number, left.hash.description) < (right.number, right.hash.description)
  }
}

/// `<number>.<hash>.syncchg`, in SyncChanges/<client>.
package struct ChangeSetName: NumberedFileName {
  /// The text after the last dot.
  package static let pathExtension = "syncchg"
  /// The change set's number, from 1.
  package var number: UInt64
  /// The fragment of the file's hash.
  package var hash: HashFragment
  /// Creates a name from its parts.
  package init(number: UInt64, hash: HashFragment) {
    self.number = number
    self.hash = hash
  }
}

/// `<number>.<hash>.synccmd`, in SyncCommands/<client>.
package struct CommandName: NumberedFileName {
  /// The text after the last dot.
  package static let pathExtension = "synccmd"
  /// The command's number, from 1.
  package var number: UInt64
  /// The fragment of the file's hash.
  package var hash: HashFragment
  /// Creates a name from its parts.
  package init(number: UInt64, hash: HashFragment) {
    self.number = number
    self.hash = hash
  }
}

/// `<number>.<hash>.store`, in WholeStore/<client>.
package struct WholeStoreName: NumberedFileName {
  /// The text after the last dot.
  package static let pathExtension = "store"
  /// The number among the client's whole stores, from 1.
  package var number: UInt64
  /// The fragment of the file's hash.
  package var hash: HashFragment
  /// Creates a name from its parts.
  package init(number: UInt64, hash: HashFragment) {
    self.number = number
    self.hash = hash
  }
}

/// `<first>-<last>.<hash>.segment`, in SyncChanges/<client>: consecutive change sets in one file,
/// at most `SegmentCodec.greatestCount`.
package struct SegmentName: DirectoryName {
  /// The numbers of its change sets.
  package var numbers: ClosedRange<UInt64>
  /// The fragment of the file's hash.
  package var hash: HashFragment

  /// Creates a name from its parts.
  package init(numbers: ClosedRange<UInt64>, hash: HashFragment) {
    self.numbers = numbers
    self.hash = hash
  }

  /// The name.
  package var description: String {
    "\(numbers.lowerBound)-\(numbers.upperBound).\(hash).segment"
  }

  /// Parses ``description``; `nil` for anything else.
  package init?(_ description: String) {
    guard let parts = description.nameParts(3), parts[2] == "segment",
      let hash = HashFragment(String(parts[1]))
    else { return nil }
    let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard bounds.count == 2, let first = NameNumber.parse(bounds[0], from: 1),
      let last = NameNumber.parse(bounds[1], from: 1), first <= last,
      last - first < UInt64(SegmentCodec.greatestCount)
    else { return nil }
    self.init(numbers: first...last, hash: hash)
  }
}
