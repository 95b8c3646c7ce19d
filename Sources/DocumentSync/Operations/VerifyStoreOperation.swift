import Foundation
import SyncDirectory
import SyncModel
import SyncStore

/// Checks a store and its shared directory against every rule, and compares the
/// two; changes nothing in either.
///
/// It needs no permission to write to the store or the directory. Nothing
/// synchronizes the store meanwhile (`storeInUse`); a directory that is away is
/// a finding. Otherwise it works like ``VerifyDirectoryOperation``.
public final class VerifyStoreOperation: SyncOperation<VerifyReport>, @unchecked Sendable {
  private let path: String
  private let directory: (any SharedDirectory)?

  /// Creates an operation for a store.
  ///
  /// - Parameter directory: The shared directory, where it is now; `nil` takes
  ///   its last known path.
  package init(
    storeAt path: String, directory: (any SharedDirectory)? = nil,
    environment: SyncEnvironment = SyncEnvironment()
  ) {
    self.path = path
    self.directory = directory
    super.init("verify the store", environment: environment)
  }

  override func perform() async throws -> VerifyReport {
    try await blocking { [self] in
      let lock = try waitingForOthers { try StoreLock(reading: path, operation: verb) }
      defer { lock?.unlock() }
      let context = OperationContext(self)
      context.begin(.verifying)
      let store = try LocalStore.verify(
        at: path, options: environment.storeOptions, findsReferences: true,
        checkCancellation: context.checkCancellation
      ) { done, total in
        context.report {
          $0.completedCount = done
          $0.totalCount = total
        }
      }
      var report = store.report
      for (key, reason) in StoreRecords.damage(in: store.records) {
        report.findings.append(
          VerifyReport.Finding(
            .recordDamaged, table: "docsync_record",
            "The store's records about the directory cannot be read.",
            detail: "\(key): \(reason)"))
      }
      if let reason = stateDamage(store) {
        report.findings.append(
          VerifyReport.Finding(
            .recordDamaged, table: "docsync_meta",
            "The store's results of commands cannot be read.", detail: "commandState: \(reason)"))
      }
      if let binding = store.binding {
        if binding.ancestor == nil, store.records[StoreRecords.setUpKey] == nil {
          report.findings.append(
            VerifyReport.Finding(
              .setUpUnfinished, table: "docsync_record",
              "The set-up as the document “\(binding.documentIdentifier)” in "
                + "\(binding.directory) is not complete."))
          report.leftOut.append("the shared directory, since the set-up is not complete.")
        } else {
          try compare(store, binding, context, &report)
        }
      }
      report.sort()
      return report
    }
  }

  private func stateDamage(_ store: StoreVerification) -> String? {
    guard let state = store.commandState else { return nil }
    do {
      _ = try StoredJSON.read(CommandState.self, from: state)
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Checks the directory, and compares the store with it.
  private func compare(
    _ store: StoreVerification, _ binding: StoreBinding, _ context: OperationContext,
    _ report: inout VerifyReport
  ) throws {
    let directory = environment.retrying(
      try self.directory ?? environment.openDirectory(binding.directory))
    func leaveOut(_ message: String, because reason: String, detail: String? = nil) {
      report.findings.append(
        VerifyReport.Finding(.directoryAway, path: directory.location, message, detail: detail))
      report.leftOut.append("the shared directory, since it \(reason).")
    }
    do {
      let found = try DirectoryVerifier(
        directory: directory, context: context, application: binding.application
      ).run()
      guard try !directory.list(.root).isEmpty else {
        return leaveOut(
          "The shared directory is empty. It may not be mounted, or not downloaded yet.",
          because: "is empty")
      }
      report.add(found.report)
      report.findings += StoreComparison(store: store, binding: binding, directory: found).run()
    } catch let error as DirectoryError where [.away, .noAnswer].contains(error.code) {
      leaveOut(
        "The shared directory does not exist.", because: "does not exist", detail: "\(error)")
    }
  }
}
