import DocumentSync
import SyncStore

/// What in a store waits or needs a decision. This is the one rule for the exit code 3 of the
/// commands that look at a store.
struct Unsettled {
  /// The change sets and commands that cannot be applied yet.
  var waits: [SyncReport.Wait] = []
  /// Damaged files of this device in the shared directory.
  var damagedFiles: [String] = []
  /// The number of open questions.
  var openConflicts: Int
  var parked: [ParkedRow] = []

  init(
    waits: [SyncReport.Wait] = [], damagedFiles: [String] = [], openConflicts: Int,
    parked: [ParkedRow] = []
  ) {
    self.waits = waits
    self.damagedFiles = damagedFiles
    self.openConflicts = openConflicts
    self.parked = parked
  }

  /// What a synchronization has left, with the hidden rows of the store.
  init(_ report: SyncReport, _ parked: [ParkedRow]) {
    self.init(
      waits: report.waiting, damagedFiles: report.damagedFiles,
      openConflicts: report.openConflicts, parked: parked)
  }

  /// Hidden rows do not count if another row stands for them or a deletion has won: nothing is to be decided.
  var status: ExitStatus {
    let isSettled =
      waits.isEmpty && damagedFiles.isEmpty && openConflicts == 0
      && !parked.contains { $0.isOpen }
    return isSettled ? .done : .waiting
  }

  /// The lines about it, with the commands that show more.
  func lines(store: String, _ names: ClientNames) -> [String] {
    var lines: [String] = []
    for wait in waits {
      lines.append("waiting: \(wait.title(names)): \(wait.message)")
      if let path = wait.path { lines.append("  \(path)") }
      if let next = wait.next(store: store, names) { lines.append("  next: \(next)") }
    }
    if waits.contains(where: { $0.reason == .manyDeletions }) {
      lines.append("Apply what is deleted: docsync sync \(shellWord(store)) --allow-deletions")
    }
    if openConflicts > 0 {
      lines.append(
        "\(counted(openConflicts, "question")) open. "
          + "Show them: docsync conflicts \(shellWord(store)) --open")
    }
    let parked = parked.filter { !$0.hasStandIn }
    if !parked.isEmpty {
      lines.append(
        "\(counted(parked.count, "row")) hidden. See them: docsync conflicts \(shellWord(store))")
      lines += parkedLines(parked, indent: 2)
    }
    return lines
  }
}

extension SyncReport.Wait {
  /// The change set or command in words.
  func title(_ names: ClientNames) -> String {
    "\(isCommand ? "command" : "change set") \(number) of \(names.label(client))"
  }

  /// What to do about it; `nil` if waiting is all, or if other lines say it.
  func next(store: String, _ names: ClientNames) -> String? {
    switch reason {
    case .notArrived, .damaged:
      "Wait until the file has arrived completely. If it does not, run “docsync sync STORE "
        + "--thorough” on \(names.label(client))."
    case .unreadable, .misplaced, .brokenChain, .fork, .refused:
      "See what to do with “docsync verify \(shellWord(store))”."
    case .newerFormat: "Update docsync on this device."
    default: nil
    }
  }
}
