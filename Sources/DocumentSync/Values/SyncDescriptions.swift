import SyncModel

/// An application's notes about itself, this client and a document, for people
/// and for its own use. A part that is `nil` stays as it is.
public struct SyncDescriptions: Hashable, Sendable {
  /// This device's name; with `nil`, its host name at the first time. At most
  /// 200 characters, without control characters and line breaks
  /// (`nameUnsuitable`).
  public var client: String?
  /// Notes about the client.
  public var clientInfo: SyncUserInfo?
  /// The name of a document that is created; its identifier if `nil`.
  public var document: String?
  /// Notes about a document that is created.
  public var documentInfo: SyncUserInfo?
  /// The name of an application that is created.
  public var application: String?
  /// Notes about an application that is created.
  public var applicationInfo: SyncUserInfo?

  /// Creates descriptions from their parts.
  public init(
    client: String? = nil, clientInfo: SyncUserInfo? = nil, document: String? = nil,
    documentInfo: SyncUserInfo? = nil, application: String? = nil,
    applicationInfo: SyncUserInfo? = nil
  ) {
    self.client = client
    self.clientInfo = clientInfo
    self.document = document
    self.documentInfo = documentInfo
    self.application = application
    self.applicationInfo = applicationInfo
  }
}

extension SyncDescriptions {
  private static let longestName = 200

  /// Throws `nameUnsuitable` if the client's name cannot be shown in lists.
  func check(_ operation: String) throws(SyncError) {
    if let client { try Self.check(client, operation) }
  }

  /// Throws `nameUnsuitable` if a client's name cannot be shown in lists.
  static func check(_ name: String, _ operation: String) throws(SyncError) {
    let isShowable = name.unicodeScalars.allSatisfy { scalar in
      switch scalar.properties.generalCategory {
      case .control, .lineSeparator, .paragraphSeparator: false
      default: true
      }
    }
    let count = name.unicodeScalars.count
    guard !isShowable || count > longestName else { return }
    throw SyncError(
      .nameUnsuitable, operation: operation,
      message: isShowable
        ? "A device's name may have \(longestName) characters, and this one has \(count)."
        : "A device's name may not have line breaks or other control characters.",
      remedy: "Choose another name.")
  }
}
