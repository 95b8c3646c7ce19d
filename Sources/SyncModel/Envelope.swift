/// The outer form of all files in a shared directory.
///
/// `Documentation/ChangeSetFormat.md` describes it byte by byte. An envelope guarantees that its
/// parts are complete. It does not know their meaning.
package struct Envelope: Hashable, Sendable {
  /// The type of a file. The raw values are those of the format.
  package enum FileType: UInt8, Sendable, CaseIterable {
    /// The application that the shared directory belongs to.
    case application = 1
    /// The description of a client.
    case clientDevice = 2
    /// One generation of a document.
    case generation = 3
    /// The deletion of a document.
    case tombstone = 4
    /// A marker: the change sets that a client has published and applied.
    case recentSync = 5
    /// Changes of rows.
    case changeSet = 6
    /// Consecutive change sets in one file.
    case segment = 7
    /// An instruction to all clients.
    case syncCommand = 8
    /// A snapshot of a document.
    case wholeStore = 9
    /// A large value.
    case asset = 10
    /// A slot that holds keys.
    case keySlot = 11
  }

  /// An extension field, with which a later version adds to the format. A reader that does not know
  /// a field ignores it, unless the field is critical.
  package struct Field: Hashable, Sendable {
    /// The lowest tag of a critical field.
    package static let firstCriticalTag: UInt16 = 0x8000
    /// The number of the field.
    package var tag: UInt16
    /// Its content, shorter than 64 KiB.
    package var content: [UInt8]

    /// Creates a field from its tag and content.
    package init(tag: UInt16, content: [UInt8]) {
      self.tag = tag
      self.content = content
    }
  }

  /// Whether ``encoded()`` may compress the body.
  package enum Compression: Sendable {
    /// The body is written as it is.
    case stored
    /// The body is compressed if that makes it smaller.
    case deflate
  }

  /// The type of the file.
  package var type: FileType
  /// The header that anyone may read, sealed or not.
  package var publicHeader: [UInt8]
  /// The header that only readers of the document may read.
  package var privateHeader: [UInt8]
  /// The content, decompressed.
  package var body: [UInt8]
  /// Whether the body is compressed in the file.
  package var compression: Compression
  /// Fields of later versions, in ascending order of tag.
  package var fields: [Field] = []
  /// The signature over the hash; empty in an unsigned file.
  package var signature: [UInt8] = []

  /// Creates an envelope from its parts.
  package init(
    type: FileType, publicHeader: [UInt8] = [], privateHeader: [UInt8] = [], body: [UInt8],
    compression: Compression = .deflate
  ) {
    self.type = type
    self.publicHeader = publicHeader
    self.privateHeader = privateHeader
    self.body = body
    self.compression = compression
  }

  /// The sizes and positions of the format.
  enum Layout {
    static let magic: [UInt8] = [0x89, 0x44, 0x53, 0x59, 0x4E, 0x43, 0x0D, 0x0A]
    static let version: UInt16 = 1
    static let fixedBytes = 88
    static let hashBytes = 32
    static let signatureLengthBytes = 4
    static let greatestSignature = 4096
    static let compressedFlag: UInt32 = 1 << 16
    static let criticalFlags: UInt32 = 0xFFFF_0000
    static let knownCriticalFlags: UInt32 = compressedFlag
    /// Deflate cannot compress better than 1032 to 1.
    static let greatestRatio = 1032
  }
}
