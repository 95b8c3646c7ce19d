import Foundation
import SyncModel

/// A client of an application: its description of itself, and its state in the
/// shared directory.
public struct ClientDescription: Hashable, Sendable {
  /// The relation of a client to its document.
  public enum Status: String, Hashable, Sendable, CaseIterable {
    /// It has registered, and has never synchronized as far as this device can
    /// see.
    case neverSynced
    /// It has synchronized, and the other devices wait for it.
    case member
    /// It was retired: the other devices do not wait for it.
    case retired
    /// Another device has removed it.
    case removed
    /// It has left.
    case left
  }

  /// The identifier that the client drew when it registered.
  public var client: ClientIdentifier
  /// The user's name for the device; empty if the description has not arrived.
  public var description: String
  /// The platform that it runs on; empty if the description has not arrived.
  public var platform: String
  /// The application's notes about the client.
  public var userInfo: SyncUserInfo = [:]
  /// The client whose state it continued, if it was not the store's first
  /// client.
  public var ancestor: ClientIdentifier?
  /// When it registered, by its own clock, in milliseconds since 1970.
  package var registeredMilliseconds: Int64?
  /// When it registered, by its own clock.
  public var registrationDate: Date? { registeredMilliseconds.map { Date(milliseconds: $0) } }
  /// The document of its store; `nil` if its description names none.
  package var document: DocumentName?
  /// Its relation to its document.
  public var status = Status.neverSynced
  /// When it left, by its own clock, in milliseconds since 1970.
  package var leftMilliseconds: Int64?
  /// When it left, by its own clock.
  public var leavingDate: Date? { leftMilliseconds.map { Date(milliseconds: $0) } }
  /// The client that removed it, and the time; `nil` if it was not removed, or
  /// while the removal cannot be read.
  public var removal: DocumentDescription.Deletion?
  /// What it has published and applied of one document; `nil` if the list is
  /// not about one document, or if the client has published no RecentSync.
  public var state: State?

  /// The state of a client in a document, by its last RecentSync.
  public struct State: Hashable, Sendable {
    /// The revision of the RecentSync.
    public var revision: UInt64
    /// The number of its last change set; 0 for none.
    public var changeHead: UInt64
    /// The change sets of others that it has applied; `nil` if the RecentSync
    /// could not be read.
    package var applied: VersionVector?
    /// When it wrote the RecentSync, by its own clock, in milliseconds since
    /// 1970: the last sign of it.
    package var milliseconds: Int64?
    /// When it wrote the RecentSync, by its own clock: the last sign of it.
    public var date: Date? { milliseconds.map { Date(milliseconds: $0) } }
    /// The announced change sets of others that it has not applied, as far as
    /// its RecentSync shows; `nil` if the RecentSync could not be read.
    public var lacking: [Lack]?

    /// Creates a state from its parts.
    package init(
      revision: UInt64, changeHead: UInt64, applied: VersionVector?, milliseconds: Int64?
    ) {
      self.revision = revision
      self.changeHead = changeHead
      self.applied = applied
      self.milliseconds = milliseconds
    }
  }

  /// Change sets of one author that a client has not applied.
  public struct Lack: Hashable, Sendable {
    /// The author.
    public var client: ClientIdentifier
    /// The first number.
    public var first: UInt64
    /// The last number.
    public var last: UInt64

    /// The number of change sets.
    public var count: UInt64 { last - first + 1 }

    /// Creates an entry from its parts.
    package init(client: ClientIdentifier, first: UInt64, last: UInt64) {
      self.client = client
      self.first = first
      self.last = last
    }
  }

  /// The number of change sets of others that it has not applied; `nil` if
  /// unknown.
  public var lag: UInt64? { state?.lacking?.reduce(0) { $0 + $1.count } }

  /// Creates a description from its parts.
  package init(
    client: ClientIdentifier, description: String = "", platform: String = "",
    ancestor: ClientIdentifier? = nil, registeredMilliseconds: Int64? = nil, state: State? = nil
  ) {
    self.client = client
    self.description = description
    self.platform = platform
    self.ancestor = ancestor
    self.registeredMilliseconds = registeredMilliseconds
    self.state = state
  }
}
