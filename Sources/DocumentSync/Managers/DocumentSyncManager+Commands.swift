import Foundation
import SyncModel
import SyncStore

/// The application's commands: messages to the same application on all other
/// devices of the document.
///
/// No method here waits for a synchronization that is under way.
extension DocumentSyncManager {
  /// Sends a command to all other members of the document, with the next
  /// synchronization.
  ///
  /// Each member gets the command once, before the changes that are sent with
  /// it or later. A device that joins afterwards does not get it. Nor does a
  /// retired device that comes back after the command was removed; the
  /// device's report then has a warning. Throws `commandTooLarge`.
  ///
  /// - Parameters:
  ///   - name: The name, at most 1 KiB in UTF-8.
  ///   - payload: The content, at most 1 MiB.
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

  /// Returns the commands of other devices that the application has not
  /// acknowledged, in the order in which to carry them out.
  ///
  /// A command stays in the queue until ``acknowledgeCommand(_:)``, even if the
  /// application ends.
  public func pendingCommands() async throws -> [CommandEvent] {
    try await ask("list the commands") { try $0.pendingEvents() }
  }

  /// Removes a command durably from the queue, after the application has
  /// carried it out. Calling it twice does no harm.
  public func acknowledgeCommand(_ command: CommandEvent) async throws {
    try await use("acknowledge the command") {
      try $0.acknowledgeEvent(of: command.client, number: command.number)
    }
  }
}
