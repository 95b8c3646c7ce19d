import SyncModel

/// An invitation as the inviting device keeps it.
///
/// Only this device answers, the first request that fits, by its own clock. It records the answer
/// and forgets the secret before it publishes the grant, so that no second request is ever
/// answered, even after a crash.
package struct PendingInvitation: Hashable, Sendable {
  /// What has become of an invitation.
  package enum State: Hashable, Sendable {
    /// No request has been answered.
    case open(Invitation)
    /// A request was answered, and its grant may still have to be published.
    case answered(Answer)
  }

  /// The answer to a request: what the grant has to contain.
  package struct Answer: Hashable, Sendable {
    /// The public keys of the guest's device.
    package var keys: DevicePublicKeys
    /// The name of the person.
    package var person: String
    /// The document in which the guest takes part.
    package var document: DocumentName
    /// The number of the invitation.
    package var number: UInt64
  }

  /// Whether it is still open.
  package internal(set) var state: State
  /// The role that the guest gets.
  package let role: Role
  /// When it expires, in milliseconds since 1970 by the clock of this device; `nil` if it does not.
  package let expiresMilliseconds: UInt64?

  /// Keeps a new invitation. Owners join with the passphrase, so `role` is `reader` or `writer`.
  package init(_ invitation: Invitation, role: Role, expiresMilliseconds: UInt64?) {
    state = .open(invitation)
    self.role = min(role, .writer)
    self.expiresMilliseconds = expiresMilliseconds
  }

  init(state: State, role: Role, expiresMilliseconds: UInt64?) {
    self.state = state
    self.role = role
    self.expiresMilliseconds = expiresMilliseconds
  }

  /// Returns whether the invitation has expired.
  package func isExpired(at milliseconds: UInt64) -> Bool {
    expiresMilliseconds.map { milliseconds >= $0 } ?? false
  }

  /// Answers the first request that fits, and forgets the secret.
  ///
  /// Returns the number of further requests that would have fitted too: the line may have come into
  /// other hands. Returns `nil` if nothing was answered: no request fits, the invitation has
  /// expired, or it was answered before.
  package mutating func answer(_ files: [[UInt8]], at milliseconds: UInt64) -> Int? {
    guard case .open(let invitation) = state, !isExpired(at: milliseconds) else { return nil }
    var fitting: [InvitationRequest] = []
    for file in files {
      do {
        fitting.append(try InvitationRequest(opening: file, for: invitation))
      } catch {
        // Not a request of this invitation. Anyone can leave files in the directory.
        continue
      }
    }
    guard let first = fitting.first else { return nil }
    state = .answered(
      Answer(
        keys: first.keys, person: first.person, document: invitation.document,
        number: invitation.number))
    return Set(fitting.map(\.keys.device)).count - 1
  }
}
