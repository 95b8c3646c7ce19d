/// What a participant may do. The raw values are those of the format; a greater role may do all that
/// a lesser one may.
package enum Role: UInt8, Hashable, Sendable, Comparable, CaseIterable {
  /// Reads, and says in markers how far it is.
  case reader = 1
  /// Also writes rows.
  case writer = 2
  /// Also decides who takes part, and about generations and whole stores.
  case owner = 3

  /// Orders roles by what they may do.
  package static func < (left: Role, right: Role) -> Bool { left.rawValue < right.rawValue }

  /// Something that a participant publishes.
  package enum Action: Hashable, Sendable, CaseIterable {
    /// What a client has published and applied.
    case marker
    /// A command that asks for a whole store, or that retires a client of the own device.
    case ownCommand
    /// A change set or a segment.
    case changeSet
    /// A command that the application defines.
    case applicationCommand
    /// A snapshot of a document.
    case wholeStore
    /// A generation file, which also a reset writes.
    case generation
    /// The deletion of a document.
    case tombstone
    /// A command that retires a client of another device.
    case retireOther
  }

  /// Returns whether a participant of this role may publish something of a kind.
  package func permits(_ action: Action) -> Bool {
    switch action {
    case .marker, .ownCommand: true
    case .changeSet, .applicationCommand: self >= .writer
    case .wholeStore, .generation, .tombstone, .retireOther: self >= .owner
    }
  }
}
