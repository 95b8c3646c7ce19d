/// What an application says of itself, of this client and of a document, for
/// people and for its own use. What is `nil` is left as it is.
public struct SyncDescriptions: Hashable, Sendable, Codable {
  /// What to call this device; its host name if `nil` at the first time.
  public var client: String?
  /// What to note of the client.
  public var clientInfo: SyncUserInfo?
  /// What to call a document that is created; its identifier if `nil`.
  public var document: String?
  /// What to note of a document that is created.
  public var documentInfo: SyncUserInfo?
  /// What to call an application that is created.
  public var application: String?
  /// What to note of an application that is created.
  public var applicationInfo: SyncUserInfo?

  /// Joins the parts.
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
