import DocumentSync
import Foundation

/// Answers every question alike, and remembers what it was asked.
final class Answering: SyncDelegate, @unchecked Sendable {
  private let lock = NSLock()
  private var heard: [SyncQuestion] = []
  private let answer: @Sendable (SyncQuestion) -> SyncQuestion.Decision

  init(_ decision: SyncQuestion.Decision) { answer = { _ in decision } }

  init(_ answer: @escaping @Sendable (SyncQuestion) -> SyncQuestion.Decision) {
    self.answer = answer
  }

  var questions: [SyncQuestion] { lock.withLock { heard } }

  func decide(_ question: SyncQuestion) async -> SyncQuestion.Decision {
    lock.withLock { heard.append(question) }
    return answer(question)
  }
}

/// What happened, in order, of a manager whose events have ended.
func names(of stream: AsyncStream<SyncEvent>) async -> [String] {
  var names: [String] = []
  for await event in stream {
    switch event {
    case .activityBegan(let activity): names.append("begin \(activity.verb)")
    case .activityEnded(let activity, let error):
      names.append("end \(activity.verb)" + (error.map { ": \($0.code)" } ?? ""))
    case .stateChanged(let state): names.append("state \(name(of: state))")
    case .registered: names.append("registered")
    case .newIncarnation: names.append("incarnation")
    case .rebootstrapped: names.append("rebootstrapped")
    case .retired(_, let reason): names.append("retired \(reason.rawValue)")
    case .documentDeleted: names.append("deleted")
    case .commandReceived: names.append("command")
    case .wholeStoreUploaded: names.append("uploaded")
    case .vacuumed: names.append("vacuumed")
    // Which rows, RowChangesTests compares.
    case .rowsChanged: break
    }
  }
  return names
}

/// A state without what it is about.
func name(of state: DocumentSyncState) -> String {
  switch state {
  case .unregistered: "unregistered"
  case .registering: "registering"
  case .registered: "registered"
  case .waitingForDecision: "waiting"
  case .deleted: "deleted"
  case .replaced: "replaced"
  case .removed: "removed"
  case .left: "left"
  }
}
