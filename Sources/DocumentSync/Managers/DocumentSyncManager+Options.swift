import SyncModel
import SyncStore

extension DocumentSyncManager {
  /// What a manager works with besides a store, a directory and a document.
  /// Everything has a default.
  public struct Options: Sendable {
    /// The application's identifier. If it is `nil`, a document that is created
    /// belongs to `docsync`, and a document of any application can be joined.
    public var application: String?
    /// What to note about the client, and about a document and an application
    /// that are created.
    public var descriptions: SyncDescriptions
    /// How a document that is created is synchronized.
    public var configuration: StoreConfiguration
    /// The delegate that decides, now and later.
    public var delegate: (any SyncDelegate)?
    /// Where to send the events, also the states before there is a manager. They have the state of one
    /// document: managers of several documents need options of their own.
    public var events: SyncEvents
    /// What operations need from the world.
    public var environment: SyncEnvironment

    /// The options that are given, and the defaults for the others.
    ///
    /// - Parameters:
    ///   - application: The application's identifier.
    ///   - client: What to call this device, rather than as `descriptions`
    ///     says; `nil` leaves it at that.
    ///   - descriptions: What to note about the client, the document and the
    ///     application.
    ///   - configuration: How a document that is created is synchronized.
    ///   - delegate: The delegate that decides.
    ///   - events: Where to send the events.
    ///   - environment: What operations need from the world.
    public init(
      application: String? = nil, client: String? = nil,
      descriptions: SyncDescriptions = SyncDescriptions(),
      configuration: StoreConfiguration = StoreConfiguration(),
      delegate: (any SyncDelegate)? = nil, events: SyncEvents = SyncEvents(),
      environment: SyncEnvironment = SyncEnvironment()
    ) {
      self.application = application
      self.descriptions = descriptions
      self.descriptions.client = client ?? descriptions.client
      self.configuration = configuration
      self.delegate = delegate
      self.events = events
      self.environment = environment
    }

    /// The application of a document that is created.
    var createdApplication: String { application ?? "docsync" }
  }
}
