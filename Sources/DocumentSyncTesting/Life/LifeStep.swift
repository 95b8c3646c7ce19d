import DocumentSync

/// One event in the life of a document.
enum LifeStep: Hashable, Sendable, CustomStringConvertible {
  /// The kinds of edits of a program.
  enum Edit: Hashable, Sendable {
    case insert, child, own, shared, delete, increment, local
    /// What no change set can carry, and what makes it small or deletes it.
    case large, shorten

    /// The kinds that every history has.
    static let usual: [Edit] = [.insert, .child, .own, .shared, .delete, .increment, .local]
  }

  /// The way in which a device retires another: it removes the other, perhaps by a command alone,
  /// or treats it as absent.
  enum Retirement: String, Hashable, Sendable, CaseIterable {
    case removed, removedByCommand, absent
  }

  /// A program edits a store.
  case edit(device: Int, Edit, salt: UInt64)
  /// A program edits the random tables.
  case work(device: Int, [String], hasForeignKeys: Bool)
  /// A device synchronizes.
  case sync(device: Int)
  /// A device makes one half of a synchronization.
  case half(device: Int, SynchronizeOperation.Extent)
  /// Some files of other devices arrive at a device.
  case arrive(device: Int, salt: UInt64)
  /// A new device joins.
  case join(device: Int)
  /// A device with a database that has rows but is not under sync joins and merges them.
  case joinMerging(device: Int, salt: UInt64)
  /// The file of a store is copied on its machine or to another machine.
  case copy(device: Int, to: Int, isElsewhere: Bool)
  /// The file of a store is moved on its machine.
  case move(device: Int)
  /// The file of a store is backed up.
  case backUp(device: Int)
  /// The file is restored from the backup.
  case restore(device: Int)
  /// The whole machine is restored to the state of its last backup.
  case rollBack(device: Int)
  /// A device uploads the whole store.
  case upload(device: Int)
  /// A device vacuums: it removes files that no device needs.
  case vacuum(device: Int)
  /// A device retires another.
  case retire(device: Int, other: Int, Retirement)
  /// Days pass in which only this device synchronizes. If `retires` is set, it then retires devices
  /// that it has not seen for long.
  case absence(device: Int, days: Int, retires: Bool)
  /// A device resets the document.
  case reset(device: Int)
  /// A device leaves.
  case leave(device: Int)
  /// The process of a device ends and starts again.
  case reopen(device: Int)
  /// A clock goes wrong, or time passes.
  case clock(device: Int, milliseconds: Int64)
  /// The application of a device is updated: it runs its next migration.
  case update(device: Int)

  /// The device that acts.
  var device: Int {
    switch self {
    case .edit(let device, _, _), .work(let device, _, _), .sync(let device), .half(let device, _),
      .arrive(let device, _), .join(let device),
      .joinMerging(let device, _), .copy(let device, _, _), .move(let device),
      .backUp(let device), .restore(let device), .rollBack(let device), .upload(let device),
      .vacuum(let device), .retire(let device, _, _), .absence(let device, _, _),
      .reset(let device), .leave(let device),
      .reopen(let device), .clock(let device, _), .update(let device):
      device
    }
  }

  var description: String {
    switch self {
    case .edit(let device, let edit, let salt): "device \(device): \(edit) (\(salt))"
    case .work(let device, let statements, let hasForeignKeys):
      "device \(device)\(hasForeignKeys ? "" : " (foreign keys off)"): "
        + (statements.count == 1 ? statements : ["BEGIN"] + statements + ["COMMIT"])
        .joined(separator: "; ")
    case .sync(let device): "device \(device) syncs"
    case .half(let device, let extent):
      "device \(device) \(extent == .fetching ? "fetches" : "sends") changes"
    case .arrive(let device, let salt): "files arrive at device \(device) (\(salt))"
    case .join(let device): "device \(device) joins"
    case .joinMerging(let device, let salt): "device \(device) joins with rows (\(salt))"
    case .copy(let device, let to, let isElsewhere):
      "device \(device) is copied to \(to)\(isElsewhere ? ", elsewhere" : "")"
    case .move(let device): "device \(device) is moved"
    case .backUp(let device): "device \(device) is backed up"
    case .restore(let device): "device \(device) is restored"
    case .rollBack(let device): "the machine of device \(device) is rolled back"
    case .upload(let device): "device \(device) uploads the whole store"
    case .vacuum(let device): "device \(device) vacuums"
    case .retire(let device, let other, let reason):
      "device \(device) retires \(other): \(reason)"
    case .absence(let device, let days, let retires):
      "only device \(device) syncs for \(days) days" + (retires ? ", and retires the others" : "")
    case .reset(let device): "device \(device) resets the document"
    case .leave(let device): "device \(device) leaves"
    case .reopen(let device): "device \(device) starts again"
    case .clock(let device, let milliseconds): "clock of device \(device) by \(milliseconds) ms"
    case .update(let device): "the application of device \(device) is updated"
    }
  }
}

/// The kinds of steps that histories may have.
package struct LifeFeatures: OptionSet, Hashable, Sendable {
  /// One bit for each kind.
  package let rawValue: Int
  /// Wraps bits.
  package init(rawValue: Int) { self.rawValue = rawValue }

  /// Devices come and go.
  package static let joins = Self(rawValue: 1 << 0)
  /// Stores are copied and moved.
  package static let copies = Self(rawValue: 1 << 1)
  /// Stores and whole machines are restored from backups.
  package static let restores = Self(rawValue: 1 << 2)
  /// Whole stores are uploaded, and files are removed, at any time.
  package static let housekeeping = Self(rawValue: 1 << 3)
  /// Devices are retired.
  package static let retirement = Self(rawValue: 1 << 4)
  /// The document is reset.
  package static let resets = Self(rawValue: 1 << 5)
  /// Clocks go wrong.
  package static let clocks = Self(rawValue: 1 << 6)
  /// Devices with rows join.
  package static let merges = Self(rawValue: 1 << 7)
  /// Histories have random tables in addition to the fixed ones.
  package static let schemas = Self(rawValue: 1 << 8)

  /// Programs insert rows with NULL in their key, which stay on the device.
  package static let missingKeys = Self(rawValue: 1 << 9)
  /// Applications are updated, and record their migrations in a table.
  package static let updates = Self(rawValue: 1 << 10)
  /// Programs create a table without a primary key, which stays on the device.
  package static let looseTables = Self(rawValue: 1 << 11)
  /// A program has a database open while the database joins with its rows, and edits it afterwards.
  package static let openPrograms = Self(rawValue: 1 << 12)
  /// Managers are asked while they synchronize.
  package static let questions = Self(rawValue: 1 << 13)
  /// Devices make one half of a synchronization alone.
  package static let halves = Self(rawValue: 1 << 15)
  /// Programs write what no change set can carry, and make it small later.
  package static let heldEdits = Self(rawValue: 1 << 14)
  /// Devices delete many rows only when they are told to.
  package static let deletionLimits = Self(rawValue: 1 << 16)
  /// Policies with the functions of the library.
  package static let functions = Self(rawValue: 1 << 17)

  /// Random tables with names that must be quoted and are easily taken for others.
  package static let hostileNames = Self(rawValue: 1 << 18)

  /// All kinds.
  package static let all = Self(rawValue: 1 << 19 - 1)
  /// The kinds before those were added that change what a seed stands for. Histories that failed
  /// before then are repeated with these.
  package static let former = all.subtracting([
    .missingKeys, .updates, .looseTables, .openPrograms, .questions, .halves,
    .heldEdits, .deletionLimits, .functions, .hostileNames,
  ])
  /// Each kind by its name on the command line.
  package static let names: [(name: String, feature: Self)] = [
    ("joins", .joins), ("copies", .copies), ("restores", .restores),
    ("housekeeping", .housekeeping), ("retirement", .retirement), ("resets", .resets),
    ("clocks", .clocks), ("merges", .merges), ("schemas", .schemas),
    ("missingKeys", .missingKeys), ("updates", .updates), ("looseTables", .looseTables),
    ("openPrograms", .openPrograms), ("questions", .questions),
    ("halves", .halves), ("heldEdits", .heldEdits), ("deletionLimits", .deletionLimits),
    ("functions", .functions), ("hostileNames", .hostileNames),
  ]
}
