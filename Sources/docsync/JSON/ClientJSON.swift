import DocumentSync

/// A client in a shared directory, as printed.
struct ClientJSON: Encodable, Sendable {
  /// What a client has sent and applied of a document.
  struct State: Encodable, Sendable {
    var revision: UInt64
    var lastNumber: UInt64
    var applied: VectorJSON?
    var syncedMilliseconds: Int64?
    var lacking: [Lack]?

    init(_ state: ClientDescription.State) {
      revision = state.revision
      lastNumber = state.changeHead
      applied = state.applied.map(VectorJSON.init)
      syncedMilliseconds = state.milliseconds
      lacking = state.lacking?.map(Lack.init)
    }
  }

  /// Change sets of one author that a client has not applied.
  struct Lack: Encodable, Sendable {
    var client: String
    var first: UInt64
    var last: UInt64

    init(_ lack: ClientDescription.Lack) {
      client = lack.client.description
      first = lack.first
      last = lack.last
    }
  }

  var client: String
  var clientName: String
  var platform: String
  var userInfo: SyncUserInfo
  var ancestor: String?
  var registeredMilliseconds: Int64?
  /// The name of the folder of its document.
  var folder: String?
  var status: String
  var leftMilliseconds: Int64?
  var removal: DeletionJSON?
  var state: State?

  init(_ client: ClientDescription) {
    self.client = client.client.description
    clientName = client.description
    platform = client.platform
    userInfo = client.userInfo
    ancestor = client.ancestor?.description
    registeredMilliseconds = client.registeredMilliseconds
    folder = client.document?.description
    status = client.status.rawValue
    leftMilliseconds = client.leftMilliseconds
    removal = client.removal.map(DeletionJSON.init)
    state = client.state.map(State.init)
  }
}
