import SyncModel

/// The clients to retire.
public enum RetirementSelection: Hashable, Sendable {
  /// One client, for a reason.
  case client(ClientIdentifier, Reason)
  /// The clients whose RecentSync has not changed for this time, by the clock
  /// of this device, summed over its own synchronizations.
  case notSeen(for: Duration)
}
