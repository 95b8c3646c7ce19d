import SyncModel

/// Signs statements and files as a device, or statements as the enrolment key.
package struct Signer: Sendable {
  /// The application.
  package let root: RootIdentifier
  /// Who signs: a device, or the enrolment key with the bits of the root.
  package let author: DeviceIdentifier
  private let key: SigningKey

  /// Signs as a device.
  package init(root: RootIdentifier, device: DeviceKeys) {
    self.root = root
    author = device.device
    key = device.signing
  }

  /// Signs as the enrolment key, after a passphrase was typed.
  package init(enrolmentOf secret: ApplicationSecret) throws {
    root = try secret.application().root
    author = .enrolment(of: root)
    key = try secret.enrolmentKey()
  }

  /// Signs a statement.
  ///
  /// - Parameter previous: The last statement of this device; `nil` for its first, and for all
  ///   statements of the enrolment key.
  package func statement(
    _ content: Statement.Content, after previous: Statement? = nil
  ) throws -> Statement {
    let isEnrolment = author == .enrolment(of: root)
    let unsigned = Statement(
      root: root, author: author, number: isEnrolment ? 0 : (previous?.number ?? 0) + 1,
      previous: isEnrolment ? nil : previous?.hash, content: content, signature: [])
    return Statement(
      root: root, author: author, number: unsigned.number, previous: unsigned.previous,
      content: content, signature: try key.signature(of: unsigned.signedMessage))
  }

  /// Signs the application file, which contains the application's public keys.
  package func signature(ofApplicationFile bytes: [UInt8]) throws -> [UInt8] {
    try key.signature(of: Label.applicationSignature.transcript(root.bits.bytes, bytes))
  }

  /// Signs a sealed file.
  ///
  /// - Parameters:
  ///   - path: The path below the root, with the hash.
  ///   - trailer: The hash of all bytes before it.
  func signature(ofFile path: String, _ trailer: ContentHash) throws -> [UInt8] {
    try key.signature(of: Self.fileMessage(root, path, trailer))
  }

  static func fileMessage(
    _ root: RootIdentifier, _ path: String, _ trailer: ContentHash
  ) -> [UInt8] {
    Label.fileSignature.transcript(root.bits.bytes, Array(path.utf8), trailer.bytes)
  }
}

extension ApplicationKeys {
  /// Returns whether the enrolment key has signed an application file.
  package func verifies(_ signature: [UInt8], ofApplicationFile bytes: [UInt8]) -> Bool {
    enrolment.verifies(
      signature, of: Label.applicationSignature.transcript(root.bits.bytes, bytes))
  }
}
