import Foundation
import SyncModel

/// A client as it describes itself in a shared directory, and as it is known
/// there.
public struct ClientDescription: Hashable, Sendable {
  /// How a client stands with its document.
  public enum Status: String, Hashable, Sendable, CaseIterable {
    /// It has registered and never synchronized, as far as can be seen.
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
  /// What its user calls the device; empty if it has not arrived.
  public var description: String
  /// The platform that it runs on; empty if it has not arrived.
  public var platform: String
  /// What it noted about itself.
  public var userInfo: SyncUserInfo = [:]
  /// The client whose state it continued, if it was not the first.
  public var ancestor: ClientIdentifier?
  /// When it registered, by its own clock, in milliseconds since 1970.
  package var registeredMilliseconds: Int64?
  /// When it registered, by its own clock.
  public var registrationDate: Date? { registeredMilliseconds.map { Date(milliseconds: $0) } }
  /// The document of its store; `nil` if its description names none.
  package var document: DocumentName?
  /// How it stands with its document.
  public var status = Status.neverSynced
  /// When it left, by its own clock, in milliseconds since 1970.
  package var leftMilliseconds: Int64?
  /// When it left, by its own clock.
  public var leavingDate: Date? { leftMilliseconds.map { Date(milliseconds: $0) } }
  /// The client that removed it, and when; `nil` if it was not removed, or
  /// while that cannot be read.
  public var removal: DocumentDescription.Deletion?
  /// What it has published and applied of one document; `nil` where none was
  /// asked for, or if it has published no RecentSync.
  public var state: State?

  /// Where a client stands with a document, by its last RecentSync.
  public struct State: Hashable, Sendable {
    /// The revision of the RecentSync.
    public var revision: UInt64
    /// The number of its last change set; 0 for none.
    public var changeHead: UInt64
    /// What it has applied of the others; `nil` if the RecentSync could not
    /// be read.
    package var applied: VersionVector?
    /// When it wrote that, by its own clock, in milliseconds since 1970:
    /// when it was seen last.
    package var milliseconds: Int64?
    /// When it wrote that, by its own clock: when it was seen last.
    public var date: Date? { milliseconds.map { Date(milliseconds: $0) } }
    /// Change sets of others that were announced and that it has not applied,
    /// as far as its RecentSync shows; `nil` where `applied` is.
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

    /// How many there are.
    public var count: UInt64 { last - first + 1 }

    /// Creates an entry from its parts.
    package init(client: ClientIdentifier, first: UInt64, last: UInt64) {
      self.client = client
      self.first = first
      self.last = last
    }
  }

  /// How many change sets of others it has not applied; `nil` where that is
  /// not known.
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
