import Foundation
import SyncModel
import SyncStore

/// The comparison of a whole store's database with its header.
///
/// A device that joins takes over the database, and announces the header, on
/// which the others rely when they vacuum.
struct WholeStoreExamination {
  /// A fault of the database or the header.
  struct Fault: Hashable {
    var kind: VerifyReport.Finding.Kind
    /// The fault as a sentence for the user.
    var message: String
    /// Details for the developer.
    var detail: String?
    /// Whether no device may join from the whole store.
    var isGrave = true
  }

  /// The faults, the gravest first.
  private(set) var faults: [Fault] = []

  /// Whether a device may join from the whole store.
  var isSound: Bool { faults.allSatisfy { !$0.isGrave } }

  /// Examines the unpacked database at `path`, without changing it.
  init(
    _ path: String, header: WholeStoreHeader, checkCancellation: @escaping () throws -> Void
  ) throws {
    let found = try SnapshotExamination(path: path, checkCancellation: checkCancellation)
    for damage in found.damage {
      note(.wholeStoreDamaged, "The database in the whole store is damaged.", damage)
    }
    if found.isNewer {
      note(.newerVersion, "The whole store was made by a newer version of DocumentSync.")
    }
    for content in found.privateContent {
      note(
        .wholeStorePrivate, "The whole store contains data that belongs to one device alone.",
        content,
        isGrave: found.hasDeviceState)
    }
    if let schema = found.schema, schema != header.schema {
      note(
        .wholeStoreSchema, "The schema in the whole store is not the one that it names.",
        "\(schema), named is \(header.schema)")
    }
    guard let vector = found.vector else { return }
    if vector != header.vector {
      note(
        .wholeStoreVector, "The change sets in the whole store are not those in its header.",
        Self.text(vector) + "; named are " + Self.text(header.vector))
    }
    compare(found.commandState, header)
  }

  /// Compares the processed commands.
  private mutating func compare(_ state: [UInt8]?, _ header: WholeStoreHeader) {
    do {
      let state = try state.map { try StoredJSON.read(CommandState.self, from: $0) }
      // The state of an earlier generation tells nothing about this one.
      let found = state?.generation == header.generation ? state?.commands : nil
      guard found ?? VersionVector() != header.commands else { return }
      note(
        .wholeStoreVector, "The commands in the whole store are not those in its header.",
        Self.text(found ?? VersionVector()) + "; named are " + Self.text(header.commands))
    } catch {
      note(
        .wholeStoreDamaged, "The results of commands in the whole store cannot be read.",
        "\(error)")
    }
  }

  private mutating func note(
    _ kind: VerifyReport.Finding.Kind, _ message: String, _ detail: String? = nil,
    isGrave: Bool = true
  ) {
    faults.append(Fault(kind: kind, message: message, detail: detail, isGrave: isGrave))
  }

  private static func text(_ vector: VersionVector) -> String {
    vector.sorted.map { "\($0.entry.number) of \($0.client)" }.joined(separator: ", ")
  }
}
