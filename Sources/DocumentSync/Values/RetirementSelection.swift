import SyncModel

/// The clients to retire.
public enum RetirementSelection: Hashable, Sendable {
  /// One client, for a reason.
  case client(ClientIdentifier, Reason)
  /// Those clients whose marker has not changed for so long, by the clock of
  /// this device, summed over its own synchronizations.
  case notSeen(for: Duration)
}
