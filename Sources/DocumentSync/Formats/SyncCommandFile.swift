import Foundation
import SyncModel

/// `<number>.<hash>.synccmd`: an instruction by one client to all others.
struct SyncCommandFile: Hashable, Codable {
  var root: RootIdentifier
  var document: DocumentName
  var generation: IntegrityKey
  var client: ClientIdentifier
  /// Its number among the client's commands, from 1.
  var number: UInt64
  /// The hash of the client's previous command.
  var previous: ContentHash?
  /// Above the stamps of all commands that the author had processed.
  var stamp: HybridTime
  var command: SyncCommand
}

/// The content of a command. It has exactly one of the parts, the one of its
/// kind; a command of an unknown kind has none.
struct SyncCommand: Hashable, Codable {
  /// The members need not wait for a client any more.
  struct Retire: Hashable, Codable {
    var client: ClientIdentifier
    var reason: RetirementSelection.Reason
    /// The revision of its newest marker that the author has seen.
    var lastRevision: UInt64
    /// The number of its last change set, if the author is the client itself or
    /// has taken its place: everything up to there is applied.
    var changeHead: UInt64?
  }

  /// Another generation takes this one's place.
  struct Reset: Hashable, Codable {
    var generation: IntegrityKey
    var ordinal: UInt64
  }

  /// The author needs a change set that was cleared away, and no whole store
  /// contains it. A client that has everything that was cleared away uploads
  /// one.
  struct Upload: Hashable, Codable {
    /// The client whose change set it is.
    var client: ClientIdentifier
    var number: UInt64
  }

  /// A command for the application.
  struct Application: Hashable, Codable {
    /// The most bytes of a payload.
    static let payloadLimit = 1 << 20
    /// The most bytes of a name.
    static let nameLimit = 1 << 10

    var name: String
    var payload: Data
  }

  /// The names of the kinds.
  enum Kind: String {
    case retire, reset, upload, application
  }

  var kind: String
  var retire: Retire?
  var reset: Reset?
  var upload: Upload?
  var application: Application?

  init(_ retire: Retire) {
    kind = Kind.retire.rawValue
    self.retire = retire
  }

  init(_ reset: Reset) {
    kind = Kind.reset.rawValue
    self.reset = reset
  }

  init(_ upload: Upload) {
    kind = Kind.upload.rawValue
    self.upload = upload
  }

  init(_ application: Application) {
    kind = Kind.application.rawValue
    self.application = application
  }

  /// Whether it is of a kind that a newer version has added.
  var isUnknown: Bool { Kind(rawValue: kind) == nil }

  /// Whether it has what its kind needs, within bounds.
  var isWellFormed: Bool {
    let parts = [retire != nil, reset != nil, upload != nil, application != nil]
    guard let kind = Kind(rawValue: kind) else { return true }
    guard parts.filter(\.self).count == 1 else { return false }
    func isNumber(_ number: UInt64) -> Bool { number <= VersionVector.greatestNumber }
    switch kind {
    case .retire:
      return retire.map { isNumber($0.lastRevision) && isNumber($0.changeHead ?? 0) } ?? false
    case .reset: return reset.map { isNumber($0.ordinal) } ?? false
    case .upload: return upload.map { isNumber($0.number) } ?? false
    case .application:
      guard let application else { return false }
      return application.payload.count <= Application.payloadLimit
        && application.name.utf8.count <= Application.nameLimit
    }
  }
}
