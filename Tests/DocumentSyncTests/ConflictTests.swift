import DocumentSync
import DocumentSyncTesting
import Foundation
import SyncDirectory
import SyncModel
import SyncStore
import Synchronization
import Testing

/// A latch that tests wait at without sleeping.
private actor Gate {
  private var isOpen = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func open() {
    isOpen = true
    for continuation in waiting { continuation.resume() }
    waiting = []
  }

  func pass() async {
    if isOpen { return }
    await withCheckedContinuation { waiting.append($0) }
  }
}

/// Asking, answering, and what reports say of conflicts.
@Suite struct ConflictTests {
  /// Two devices of which the second, which has not published, disagrees.
  private func disagreement(
    policy: ConflictPolicy = .ask, _ change: (inout SyncEnvironment) -> Void = { _ in }
  ) async throws -> TestFleet {
    let fleet = try await TestFleet(2) { environment in
      // Edits have the system's clock, and the world has its own.
      environment.store.clockTolerance = .max
      change(&environment)
    }
    try await fleet[1].setPolicies { $0.set(policy, table: "notes", column: "body") }
    try fleet[1].put("seed-0", "mine")
    try fleet[0].put("seed-0", "theirs")
    try await fleet[0].synchronize()
    return fleet
  }

  private func body(_ manager: DocumentSyncManager) throws -> String? {
    try manager.notes().first { $0.hasPrefix("seed-0=") }
  }

  @Test func theAnswerOfTheDelegateIsSentByTheSameSynchronization() async throws {
    let fleet = try await disagreement()
    fleet[1].setDelegate(
      Deciding { [manager = fleet[1]] conflict in
        // It is in the journal, durably, before anyone is asked.
        let stored = try await manager.conflict(conflict.number)
        #expect(stored.status == .open && stored.remote.cells?.first?.value == .text("theirs"))
        #expect(conflict.local.cells?.first?.value == .text("mine"))
        return .value(.text("both"))
      })
    let report = try await fleet[1].synchronize()
    #expect(report.questions == [1] && report.openConflicts == 0)
    #expect(report.sent.count == 2)
    try await fleet[0].synchronize()
    #expect(try body(fleet[0]) == "seed-0=both")
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try await fleet[1].conflict(1).status == .answered)
  }

  @Test func withoutADelegateTheSynchronizationGoesOnAndTheQuestionStaysOpen() async throws {
    var fleet = try await disagreement()
    let report = try await fleet[1].synchronize()
    #expect(report.openConflicts == 1 && report.sent.count == 1)
    try await fleet.settle()
    try fleet.expectEqual()
    try await fleet.reopen(1)
    let open = try await fleet[1].conflicts(onlyOpen: true)
    #expect(open.map(\.number) == [1])
    // A delegate that comes later is not asked again by itself.
    try await fleet[1].resolveConflict(1, by: .local)
    let error = await syncError { try await fleet[1].resolveConflict(1, by: .local) }
    #expect(error?.code == .conflictNotOpen)
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try body(fleet[0]) == "seed-0=mine")
  }

  @Test func anotherDocumentGoesOnWhileOneWaits() async throws {
    let fleet = try await disagreement()
    let other = try await TestFleet(1)
    let (asked, answered) = (Gate(), Gate())
    fleet[1].setDelegate(
      Deciding { _ in
        await asked.open()
        await answered.pass()
        return .local
      })
    let syncing = Task { [manager = fleet[1]] in try await manager.synchronize() }
    await asked.pass()
    try other[0].put("seed-0", "meanwhile")
    #expect(try await other[0].synchronize().sent.count == 1)
    // Nothing has been acknowledged or published meanwhile.
    #expect(fleet.changeSets(of: 1).isEmpty)
    await answered.open()
    #expect(try await syncing.value.openConflicts == 0)
    try await fleet.settle()
    #expect(try body(fleet[0]) == "seed-0=mine")
  }

  @Test func anAnswerFromAnotherProcessCountsWhileTheDelegateIsAsked() async throws {
    let fleet = try await disagreement()
    let (asked, answered) = (Gate(), Gate())
    fleet[1].setDelegate(
      Deciding { _ in
        await asked.open()
        await answered.pass()
        return .remote
      })
    let syncing = Task { [manager = fleet[1]] in try await manager.synchronize() }
    await asked.pass()
    let other = try LocalStore.open(at: fleet[1].store.path)
    try other.resolveConflict(1, by: .value(.text("elsewhere")))
    try other.close()
    await answered.open()
    let report = try await syncing.value
    #expect(report.warnings == [] && report.openConflicts == 0)
    try await fleet.settle()
    #expect(try body(fleet[0]) == "seed-0=elsewhere")
  }

  @Test func aSynchronizationThatIsCancelledWhileAskingLeavesTheQuestionOpen() async throws {
    let fleet = try await disagreement()
    let asked = Gate()
    fleet[1].setDelegate(
      Deciding { _ in
        await asked.open()
        // It does not even notice that it was cancelled.
        await Gate().pass()
        return .local
      })
    let syncing = Task { [manager = fleet[1]] in try await manager.synchronize() }
    await asked.pass()
    syncing.cancel()
    let error = await syncError { _ = try await syncing.value }
    #expect(error?.code == .cancelled)
    #expect(try await fleet[1].conflicts(onlyOpen: true).count == 1)
    // The next one asks again.
    fleet[1].setDelegate(Deciding { _ in .value(.text("both")) })
    try await fleet.settle()
    try fleet.expectEqual()
    #expect(try body(fleet[0]) == "seed-0=both")
  }

  /// A synchronization that fails after it has applied the change asks no delegate; the next one does, before it
  /// sends anything.
  @Test(arguments: [true, false]) func theNextSynchronizationAsksAfterOneThatFailed(
    hasDelegate: Bool
  ) async throws {
    let fleet = try await disagreement { $0.thresholds.windowCount = 1 }
    for number in 1...5 {
      try fleet[0].put("other \(number)", "1")
      try await fleet[0].synchronize()
    }
    let asked = Mutex(0)
    if hasDelegate {
      fleet[1].setDelegate(
        Deciding { _ in
          asked.withLock { $0 += 1 }
          return .value(.text("both"))
        })
    }
    fleet.directories[1].script(
      FaultyDirectory.Fault(.fail(.away), on: .read, pathPart: "SyncChanges", occurrence: 5))
    let error = await syncError { _ = try await fleet[1].synchronize() }
    #expect(error != nil)
    #expect(try await fleet[1].conflicts(onlyOpen: true).count == 1)
    #expect(asked.withLock(\.self) == 0)
    let report = try await fleet[1].synchronize()
    #expect(report.questions == [1] && report.openConflicts == (hasDelegate ? 0 : 1))
    #expect(asked.withLock(\.self) == (hasDelegate ? 1 : 0))
    #expect(try await fleet[1].synchronize().questions == [])
    try await fleet.settle()
    try fleet.expectEqual()
    if hasDelegate { #expect(try body(fleet[0]) == "seed-0=both") }
  }

  /// A question is asked once, also if the directory is full.
  @Test func whatCannotBeSentIsNotAskedAgain() async throws {
    let fleet = try await disagreement()
    let asked = Mutex(0)
    fleet[1].setDelegate(
      Deciding { _ in
        asked.withLock { $0 += 1 }
        return nil
      })
    fleet.memory.capacity = 0
    for _ in 0..<2 {
      let error = await syncError { _ = try await fleet[1].synchronize() }
      #expect(error?.code == .noSharedSpace)
    }
    fleet.memory.capacity = .max
    // The first report tells it.
    #expect(try await fleet[1].synchronize().questions == [1])
    try await fleet.settle()
    #expect(asked.withLock(\.self) == 1)
    #expect(try await fleet[1].synchronize().questions == [])
  }

  /// Another process answers it before the next synchronization.
  @Test func whatIsAnsweredElsewhereIsNotAskedAgain() async throws {
    let fleet = try await disagreement()
    let asked = Mutex(0)
    fleet.memory.capacity = 0
    let error = await syncError { _ = try await fleet[1].synchronize() }
    #expect(error?.code == .noSharedSpace)
    let other = try LocalStore.open(at: fleet[1].store.path)
    try other.resolveConflict(1, by: .value(.text("elsewhere")))
    try other.close()
    fleet.memory.capacity = .max
    fleet[1].setDelegate(
      Deciding { _ in
        asked.withLock { $0 += 1 }
        return nil
      })
    #expect(try await fleet[1].synchronize().questions == [])
    #expect(asked.withLock(\.self) == 0)
  }

  @Test func afterItsTimeLimitTheLaterChangeStandsAndTheQuestionStaysOpen() async throws {
    let limit = Gate()
    let fleet = try await disagreement { environment in
      environment.sleep = { _ in await limit.pass() }
    }
    fleet[1].setDelegate(
      Deciding { _ in
        await limit.open()
        await Gate().pass()
        return .local
      })
    let report = try await fleet[1].synchronize()
    #expect(report.openConflicts == 1 && report.sent.count == 1)
    fleet[1].setDelegate(nil)
    try await fleet.settle()
    try fleet.expectEqual()
  }

  @Test func aDelegateThatFailsOrAnswersWhatIsRefusedIsWarnedOf() async throws {
    struct Unwilling: Error {}
    let fleet = try await disagreement()
    fleet[1].setDelegate(Deciding { _ in throw Unwilling() })
    let report = try await fleet[1].synchronize()
    #expect(report.warnings.map(\.code) == [.policyFailed])
    #expect(report.warnings.first?.conflict == 1 && report.openConflicts == 1)
  }

  @Test func aPolicyThatFailsIsInTheReportAndTheRestIsSynchronized() async throws {
    struct Failed: Error {}
    let fleet = try await disagreement(policy: .resolve("f"))
    fleet[1].setDelegate(Resolving { _, _ in throw Failed() })
    try fleet[0].put("new", "row")
    try await fleet[0].synchronize()
    let report = try await fleet[1].synchronize()
    #expect(report.warnings.map(\.code) == [.policyFailed])
    #expect(report.openConflicts == 1 && report.insertedRows == 1 && report.questions == [])
    try await fleet.settle()
    try fleet.expectEqual()
  }

  @Test func theDelegateResolvesByTheNameOfThePolicy() async throws {
    let fleet = try await disagreement(policy: .resolve("f"))
    fleet[1].setDelegate(
      Resolving { values, name in
        guard name == "f", case .text(let local) = values.local,
          case .text(let remote) = values.remote
        else { return nil }
        return .text(local + remote)
      })
    let report = try await fleet[1].synchronize()
    #expect(report.warnings == [] && report.openConflicts == 0)
    try await fleet.settle()
    #expect(try body(fleet[0]) == "seed-0=minetheirs")
  }

  @Test func aNameThatTheDelegateDoesNotKnowLeavesTheConflictOpen() async throws {
    let fleet = try await disagreement(policy: .resolve("f"))
    fleet[1].setDelegate(Deciding { _ in .local })
    let report = try await fleet[1].synchronize()
    #expect(report.warnings.map(\.code) == [.policyFailed] && report.openConflicts == 1)
    #expect(report.warnings.first?.message.contains("No function “f”") == true)
  }

  @Test func reportsTellOfEditsAgainstDeletions() async throws {
    let fleet = try await TestFleet(2) { $0.store.clockTolerance = .max }
    try fleet[0].put("seed-0", "edited")
    try fleet[1].edit("DELETE FROM notes WHERE id = 'seed-0'")
    try await fleet[0].synchronize()
    let report = try await fleet[1].synchronize()
    #expect(report.warnings.map(\.code) == [.editOfDeletedRow])
    #expect(report.conflicts == 1)
    try await fleet[1].restoreConflict(1)
    try await fleet.settle()
    #expect(try body(fleet[0]) == "seed-0=edited")
  }

  @Test func policiesAreGivenWhenADocumentIsCreatedJoinedAndOpened() async throws {
    let scratch = try Scratch()
    let (directory, world) = (MemoryDirectory(seed: 1), World(seed: 1))
    let path = try scratch.makeNotes("a")
    func policies(_ policy: ConflictPolicy, _ table: SQLName = "notes") -> SyncPolicies {
      var policies = SyncPolicies()
      policies.set(policy, table: table, column: "body")
      return policies
    }
    func options(_ policies: SyncPolicies?) -> DocumentSyncManager.Options {
      DocumentSyncManager.Options(policies: policies, environment: world.environment)
    }
    // Nothing is begun with policies for a table that is not there.
    let unsuitable = options(policies(.mergeText, "nothing"))
    let refusal = await syncError {
      _ = try await DocumentSyncManager.create(
        storeAt: path, directory: directory, document: "notes", options: unsuitable)
    }
    #expect(refusal?.code == .policyUnsuitable)
    #expect(try !LocalStore.isUnderSync(at: path))

    let created = try await DocumentSyncManager.create(
      storeAt: path, directory: directory, document: "notes", options: options(policies(.mergeText))
    )
    #expect(try await created.policies() == policies(.mergeText))
    let joined = try await DocumentSyncManager.join(
      storeAt: scratch.path + "/b.db", directory: directory,
      options: options(policies(.unionOfLines)))
    #expect(try await joined.policies() == policies(.unionOfLines))
    try await created.close()
    for (given, expected) in [(nil, policies(.mergeText)), (policies(.ask), policies(.ask))] {
      let opened = try await DocumentSyncManager.open(
        storeAt: path, directory: directory, options: options(given))
      #expect(try await opened.policies() == expected)
      try await opened.close()
    }
    let error = await syncError {
      _ = try await DocumentSyncManager.open(
        storeAt: path, directory: directory, options: unsuitable)
    }
    #expect(error?.code == .policyUnsuitable)
    let opened = try await DocumentSyncManager.open(
      storeAt: path, directory: directory, options: options(nil))
    #expect(try await opened.policies() == policies(.ask))
  }

  @Test func policiesThatNameNothingAreRefused() async throws {
    let fleet = try await TestFleet(1)
    let error = await syncError {
      try await fleet[0].setPolicies { $0.set(.ask, table: "nothing") }
    }
    #expect(error?.code == .policyUnsuitable)
    #expect(try await fleet[0].policies() == SyncPolicies())
  }
}

/// Answers conflicts, and has the usual decisions about documents.
private struct Deciding: SyncDelegate {
  let decide: @Sendable (Conflict) async throws -> Conflict.Answer?

  init(_ decide: @escaping @Sendable (Conflict) async throws -> Conflict.Answer?) {
    self.decide = decide
  }

  func answer(_ conflict: Conflict) async throws -> Conflict.Answer? { try await decide(conflict) }
}

/// Decides between values.
private struct Resolving: SyncDelegate {
  let function: @Sendable (Conflict.Values, String) throws -> Value?

  init(_ function: @escaping @Sendable (Conflict.Values, String) throws -> Value?) {
    self.function = function
  }

  func resolve(_ values: Conflict.Values, by name: String) throws -> Value? {
    try function(values, name)
  }
}
