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
  /// The stamp, greater than those of all commands that the author had
  /// processed.
  var stamp: HybridTime
  var command: SyncCommand
}

/// The content of a command. It has exactly the one part of its kind; a command
/// of an unknown kind has none.
struct SyncCommand: Hashable, Codable {
  /// Retires a client: the members stop waiting for it.
  struct Retire: Hashable, Codable {
    var client: ClientIdentifier
    var reason: RetirementSelection.Reason
    /// The revision of its newest marker that the author has seen.
    var lastRevision: UInt64
    /// The number of its last change set, up to which all are applied, if the
    /// author is the client itself or has replaced it.
    var changeHead: UInt64?
  }

  /// Resets the document: another generation replaces this one.
  struct Reset: Hashable, Codable {
    var generation: IntegrityKey
    var ordinal: UInt64
  }

  /// Asks for a whole store: the author needs a change set that was vacuumed,
  /// and no whole store contains it. A client that has everything that was
  /// vacuumed uploads one.
  struct Upload: Hashable, Codable {
    /// The author of the change set.
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

  /// Whether a newer version has added its kind.
  var isUnknown: Bool { Kind(rawValue: kind) == nil }

  /// Whether it has exactly the part of its kind, with values within limits.
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
