import SyncModel
import SyncStore

extension DocumentSyncManager {
  /// A manager's options besides a store, a directory and a document. Each has
  /// a default.
  public struct Options: Sendable {
    /// The application's identifier. With `nil`, a created document belongs to
    /// `docsync`, and a document of any application can be joined.
    public var application: String?
    /// Notes about the client, and about a document and an application that the
    /// manager creates.
    public var descriptions: SyncDescriptions
    /// How a created document is synchronized.
    public var configuration: StoreConfiguration
    /// The policies that the device has from now on, whether the document is
    /// created, joined or opened; `nil` leaves those that the store has.
    public var policies: SyncPolicies?
    /// The delegate of the call and of the manager that it returns.
    public var delegate: (any SyncDelegate)?
    /// The receiver of all events and states, including those from before the
    /// manager exists. It has the state of one document: give managers of
    /// several documents options of their own.
    public var events: SyncEvents
    /// The clock, the random numbers and the limits for operations.
    public var environment: SyncEnvironment

    /// Creates options from the given parts and the defaults for the others.
    ///
    /// - Parameters:
    ///   - application: The application's identifier.
    ///   - client: This device's name, in place of the one in `descriptions`;
    ///     `nil` takes that one.
    ///   - descriptions: Notes about the client, the document and the
    ///     application.
    ///   - configuration: How a created document is synchronized.
    ///   - policies: The policies that the device has from now on; `nil` leaves
    ///     those that the store has.
    ///   - delegate: The delegate that decides.
    ///   - events: The receiver of the events.
    ///   - environment: The clock, the random numbers and the limits for
    ///     operations.
    public init(
      application: String? = nil, client: String? = nil,
      descriptions: SyncDescriptions = SyncDescriptions(),
      configuration: StoreConfiguration = StoreConfiguration(), policies: SyncPolicies? = nil,
      delegate: (any SyncDelegate)? = nil, events: SyncEvents = SyncEvents(),
      environment: SyncEnvironment = SyncEnvironment()
    ) {
      self.application = application
      self.descriptions = descriptions
      self.descriptions.client = client ?? descriptions.client
      self.configuration = configuration
      self.policies = policies
      self.delegate = delegate
      self.events = events
      self.environment = environment
    }

    /// The application that a created document belongs to.
    var createdApplication: String { application ?? "docsync" }
  }
}
