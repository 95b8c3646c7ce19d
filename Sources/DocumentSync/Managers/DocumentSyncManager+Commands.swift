import Foundation
import SyncModel
import SyncStore

/// Commands for the application: instructions to the same application on all
/// other devices of the document.
///
/// None of these waits for a synchronization that is under way.
extension DocumentSyncManager {
  /// Sends a command to all other members of the document, with the next
  /// synchronization.
  ///
  /// Each of them gets it once, before the changes that are sent with it or
  /// later. A device that joins afterwards does not get it, nor does one that
  /// comes back after it was retired and the command was cleared away, which
  /// its report warns of. Throws
  /// `commandTooLarge`.
  ///
  /// - Parameters:
  ///   - name: At most 1 KiB in UTF-8.
  ///   - payload: At most 1 MiB.
  public func sendCommand(name: String, payload: [UInt8] = []) async throws {
    typealias Application = SyncCommand.Application
    guard payload.count <= Application.payloadLimit, name.utf8.count <= Application.nameLimit
    else {
      throw SyncError(
        .commandTooLarge, operation: "send the command", path: store.path,
        message: "A command carries at most \(Application.payloadLimit) bytes, and its name has "
          + "at most \(Application.nameLimit).",
        remedy: "Put what is longer into the document.",
        detail: "payload of \(payload.count) bytes, name of \(name.utf8.count)")
    }
    try await use("send the command") { store in
      try CommandSteps.enqueue(
        SyncCommand(Application(name: name, payload: Data(payload))), in: store)
    }
  }

  /// The commands of others that the application has not acknowledged, in
  /// the order in which they are to be carried out.
  ///
  /// They stay, even if the application ends, until ``acknowledgeCommand(_:)``.
  public func pendingCommands() async throws -> [CommandEvent] {
    try await use("list the commands") { try $0.pendingEvents() }
  }

  /// Takes a command out of the queue, durably: the application has carried
  /// it out. It never comes again. Idempotent.
  public func acknowledgeCommand(_ command: CommandEvent) async throws {
    try await use("acknowledge the command") {
      try $0.acknowledgeEvent(of: command.client, number: command.number)
    }
  }
}
