import SyncModel

/// A signed statement about who takes part, in a file that is written once.
///
/// The enrolment key grants and removes owners. Owner devices grant and remove writers and readers,
/// make epochs, and name the generation files and tombstones that count; the statements of one device
/// are a chain.
package struct Statement: Hashable, Sendable {
  /// The application.
  package let root: RootIdentifier
  /// The device that made the statement; for the enrolment key, the bits of the root.
  package let author: DeviceIdentifier
  /// The number in the author's chain, from 1; 0 for the enrolment key, which has no chain.
  package let number: UInt64
  /// The statement before it in the chain; `nil` for the first.
  package let previous: ContentHash?
  /// What it states.
  package let content: Content
  /// The signature of the author. It has not been verified.
  package let signature: [UInt8]
  /// The hash by which other statements and markers name this one. It does not cover the signature.
  package let hash: ContentHash

  /// What a statement states.
  package enum Content: Hashable, Sendable {
    /// The device is an owner's. Signed by the enrolment key.
    case ownerGrant(OwnerGrant)
    /// The device is no owner's any more, and takes no part. Signed by the enrolment key.
    case ownerRemoval(OwnerRemoval)
    /// The device may write or read.
    case grant(Grant)
    /// The device takes no part any more.
    case removal(Removal)
    /// An epoch key, sealed to participants.
    case keys(EpochKeys)
    /// A generation file or a tombstone counts.
    case file(CountedFile)
  }

  /// A grant of the role of owner, in all documents.
  package struct OwnerGrant: Hashable, Sendable {
    /// The public keys of the device.
    package var keys: DevicePublicKeys
    /// The name of the person, sealed; `nil` if there is none.
    package var person: SealedPerson?

    /// Creates a grant.
    package init(keys: DevicePublicKeys, person: SealedPerson? = nil) {
      self.keys = keys
      self.person = person
    }
  }

  /// The end of an owner’s part in all documents.
  package struct OwnerRemoval: Hashable, Sendable {
    /// The device that is removed.
    package var device: DeviceIdentifier
    /// The last statement of the device that the author of the removal had seen; `nil` if none.
    package var head: ContentHash?

    /// Creates a removal.
    package init(device: DeviceIdentifier, head: ContentHash?) {
      self.device = device
      self.head = head
    }
  }

  /// A grant in named documents.
  package struct Grant: Hashable, Sendable {
    /// The public keys of the device.
    package var keys: DevicePublicKeys
    /// The role: writer or reader.
    package var role: Role
    /// The documents, in ascending order.
    package var documents: [DocumentName]
    /// The newest marker of the granting device, if the grant answers an invitation: the guest
    /// accepts nothing older.
    package var newest: MarkerReference?
    /// The name of the person, sealed; `nil` if there is none.
    package var person: SealedPerson?

    /// Creates a grant.
    package init(
      keys: DevicePublicKeys, role: Role, documents: [DocumentName],
      newest: MarkerReference? = nil, person: SealedPerson? = nil
    ) {
      self.keys = keys
      self.role = role
      self.documents = Set(documents).sorted()
      self.newest = newest
      self.person = person
    }
  }

  /// A removal of a writer or reader. It is final for the device's keys.
  package struct Removal: Hashable, Sendable {
    /// The device that is removed.
    package var device: DeviceIdentifier
    /// The documents in which it takes no part any more, in ascending order; none means all.
    package var documents: [DocumentName]

    /// Creates a removal.
    package init(device: DeviceIdentifier, documents: [DocumentName] = []) {
      self.device = device
      self.documents = Set(documents).sorted()
    }
  }

  /// A generation file or a tombstone that counts.
  package struct CountedFile: Hashable, Sendable {
    /// The kind of file.
    package enum Kind: UInt8, Hashable, Sendable {
      /// A generation file.
      case generation = 3
      /// The file that says that a document was deleted.
      case tombstone = 4
    }

    /// The kind of file.
    package var kind: Kind
    /// The document to which the file belongs.
    package var document: DocumentName
    /// The hash of the file.
    package var hash: ContentHash

    /// Names a file.
    package init(kind: Kind, document: DocumentName, hash: ContentHash) {
      self.kind = kind
      self.document = document
      self.hash = hash
    }
  }

  /// What a guest needs to recognize a marker.
  package struct MarkerReference: Hashable, Sendable {
    /// The client that published it.
    package var client: ClientIdentifier
    /// The revision, which has to be at least this one.
    package var revision: UInt64
    /// The hash of that revision.
    package var hash: ContentHash

    /// Names a marker.
    package init(client: ClientIdentifier, revision: UInt64, hash: ContentHash) {
      self.client = client
      self.revision = revision
      self.hash = hash
    }
  }

  /// Takes the parts of a statement that was read or has just been signed.
  init(
    root: RootIdentifier, author: DeviceIdentifier, number: UInt64, previous: ContentHash?,
    content: Content, signature: [UInt8]
  ) {
    self.root = root
    self.author = author
    self.number = number
    self.previous = previous
    self.content = content
    self.signature = signature
    hash =
      OuterForm(
        type: .statement,
        body: Self.body(root, author, number, previous, content), signature: []
      ).hash
  }

  /// What the signature covers.
  var signedMessage: [UInt8] {
    Label.statementSignature.transcript(root.bits.bytes, hash.bytes)
  }

  /// Whether the enrolment key made the statement, as the statement has it.
  package var isOfEnrolment: Bool { author == .enrolment(of: root) }

  /// The keys of a device that the statement names with them. They prove themselves: the device is
  /// their hash.
  package var namedKeys: DevicePublicKeys? {
    switch content {
    case .ownerGrant(let grant): grant.keys
    case .grant(let grant): grant.keys
    default: nil
    }
  }
}
